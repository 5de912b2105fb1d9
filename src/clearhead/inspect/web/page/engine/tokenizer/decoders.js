// From tokens to text: each decoder of a tokenizer file is a function from a list of strings to another, which are joined.

import { BYTES, bytesOf, decoded, decodedStrictly } from "./bytes.js";
import { build } from "./known.js";
import { compile, replace } from "./patterns.js";

const KINDS = {
  Sequence: ({ decoders }) => chained(decoders.map(decoder)),
  ByteLevel: () => byteLevel,
  ByteFallback: () => byteFallback,
  Fuse: () => (tokens) => [tokens.join("")],
  Replace: ({ pattern, content }) => replacing(compile(pattern), content),
  Strip: ({ content, start, stop }) => (tokens) => tokens.map((token) => stripped(token, content, start, stop)),
  WordPiece: wordPiece,
  Metaspace: metaspace,
  BPEDecoder: ({ suffix }) => (tokens) =>
    tokens.map((token, place) => token.replaceAll(suffix, place === tokens.length - 1 ? "" : " ")),
};

export const decoder = (settings) => (settings ? build("decoder", KINDS, settings) : (tokens) => [tokens.join(" ")]);

const chained = (steps) => (tokens) => steps.reduce((changed, step) => step(changed), tokens);

const replacing = (pattern, content) => (tokens) => tokens.map((token) => replace(token, pattern, content));

function byteLevel(tokens) {
  const bytes = (token) => {
    const found = Array.from(token, (character) => BYTES.get(character));
    return found.includes(undefined) ? Array.from(bytesOf(token)) : found;
  };
  return [decoded(tokens.flatMap(bytes))];
}

// Tokens such as <0xE2> in a row are the bytes of a text, or each becomes U+FFFD.
function byteFallback(tokens) {
  const result = [];
  let bytes = [];
  const flush = () => {
    if (bytes.length > 0) result.push(...[decodedStrictly(bytes) ?? bytes.map(() => "\uFFFD")].flat());
    bytes = [];
  };
  for (const token of tokens) {
    const byte = /^<0x([\da-fA-F]{2})>$/.exec(token);
    if (byte) bytes.push(parseInt(byte[1], 16));
    else {
      flush();
      result.push(token);
    }
  }
  flush();
  return result;
}

// Without as many as `start` of a character at the beginning of a token, and `stop` at its end.
function stripped(token, content, start, stop) {
  const characters = Array.from(token);
  let begin = 0;
  let end = characters.length;
  while (begin < start && characters[begin] === content) begin++;
  while (characters.length - end < stop && end > begin && characters[end - 1] === content) end--;
  return characters.slice(begin, end).join("");
}

const CLEANED = [" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're"];
const CLEAN = { " ' ": "'", " do not": " don't" }; // of the others, only the space goes

// A space before each token but the first and those with the prefix.
function wordPiece({ prefix, cleanup }) {
  const spaced = (token) => (token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`);
  const clean = (text) => CLEANED.reduce((left, rule) => left.replaceAll(rule, CLEAN[rule] ?? rule.slice(1)), text);
  return (tokens) => {
    const words = tokens.map((token, place) => (place === 0 ? token : spaced(token)));
    return cleanup ? words.map(clean) : words;
  };
}

function metaspace({ replacement, prepend_scheme }) {
  return (tokens) =>
    tokens.map((token, place) => token.replaceAll(replacement, place === 0 && prepend_scheme !== "never" ? "" : " "));
}
