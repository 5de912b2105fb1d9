// How a text is split before the model of a tokenizer sees it: no token spans two pieces. Each pre-tokenizer of a tokenizer
// file is a function from a piece to its parts. A piece is {text, first}: `first` if the whole text begins with it,
// with a character that no normalizer has removed.

import { spelled } from "./bytes.js";
import { BERT_PUNCTUATION, SPACE, WORD } from "./characters.js";
import { build } from "./known.js";
import { compile, split } from "./patterns.js";

const PUNCTUATION = new RegExp(`[${BERT_PUNCTUATION}]`, "gv");
const SPACES = new RegExp(`[${SPACE}]`, "gv");
const DIGITS = /\p{N}/gu;
const WORDS = new RegExp(`[${WORD}]+|[^${WORD}${SPACE}]+`, "gv");
// A contraction; letters, digits or other characters, each with a space before them; spaces, except one before a word.
export const GPT2_WORDS = compile({
  Regex: String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
});

const KINDS = {
  Sequence: ({ pretokenizers }) => chained(pretokenizers.map(preTokenizer)),
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  BertPreTokenizer: () => chained([splitting(SPACES, "Removed"), splitting(PUNCTUATION, "Isolated")]),
  Whitespace: () => splitting(WORDS, "Removed", true),
  WhitespaceSplit: () => splitting(SPACES, "Removed"),
  Punctuation: ({ behavior }) => splitting(PUNCTUATION, behavior),
  Digits: ({ individual_digits }) => splitting(DIGITS, individual_digits ? "Isolated" : "Contiguous"),
  Split: ({ pattern, behavior, invert }) => splitting(compile(pattern), behavior, invert),
};

export const preTokenizer = (settings) => (settings ? build("pre-tokenizer", KINDS, settings) : (piece) => [piece]);

const chained = (steps) => (piece) => steps.reduce((pieces, step) => pieces.flatMap(step), [piece]);

const splitting = (pattern, behavior, invert) => (piece) =>
  split(piece.text, pattern, behavior, invert).map(([begin, end]) => ({
    text: piece.text.slice(begin, end),
    first: piece.first && begin === 0,
  }));

function byteLevel({ add_prefix_space, use_regex }) {
  const words = splitting(GPT2_WORDS, "Isolated");
  return ({ text, first }) => {
    const piece = { text: add_prefix_space && !text.startsWith(" ") ? ` ${text}` : text, first };
    return (use_regex ? words(piece) : [piece]).map((part) => ({ ...part, text: spelled(part.text) }));
  };
}

function metaspace({ replacement, prepend_scheme, split: cut }) {
  const words = splitting(compile({ String: replacement }), "MergedWithNext");
  return ({ text, first }) => {
    const marked = text.replaceAll(" ", replacement);
    const prepended = prepend_scheme === "always" || (prepend_scheme === "first" && first);
    const piece = { text: prepended && !marked.startsWith(replacement) ? replacement + marked : marked, first };
    return cut ? words(piece) : [piece];
  };
}
