// The token ids with which a model is called for a text, as inspect/inputs.py.

import { start } from "./model.js";
import { EXTRA_TOKENS, greedy } from "./search.js";

export const MOST_TOKENS = 2000; // of one side

export const limitOf = ({ config }) => (config.position === "learned" ? config.max_length : Infinity);

export function special(tokenizer, name) {
  const id = tokenizer.special[name];
  if (id === undefined) throw new Error(`this tokenizer has no special token for '${name}'`);
  return id;
}

// An encoder-decoder without a target writes its own. In a language model the target is appended to the text.
export function encodeInputs(run, m, text, target) {
  const { source, target: own } = run.tokenizers;
  const { family, head } = run.config;
  if (family === "encoder-decoder") {
    const read = [...encode(source, text), special(source, "end")];
    const written = target ? encode(own, target) : writeTarget(run, m, read);
    return named(run, text, own.decode(written), { source: read, target: [special(own, "start"), ...written] });
  }
  if (family === "decoder-only") {
    return named(run, text, target, { target: [...encodePrompt(run, text), ...encode(own, target)] });
  }
  if (target) throw new Error(`target '${target}': an encoder-only model reads one text; leave the target out`);
  const inside = head === "vocabulary" ? encodeMasked(own, text) : encode(own, text);
  return named(run, text, "", { source: [special(own, "start"), ...inside, special(own, "end")] });
}

function named(run, text, target, ids, written = 0) {
  const tokens = {};
  for (const [side, numbers] of Object.entries(ids)) tokens[side] = numbers.map((id) => tokenizerOf(run, side).piece(id));
  return { text, target, ids, tokens, written };
}

export const tokenizerOf = (run, side) => {
  if (!["source", "target"].includes(side)) throw new Error(`side '${side}': expected source or target`);
  return run.config.family === "encoder-decoder" ? run.tokenizers[side] : run.tokenizers.target;
};

function encode(tokenizer, text) {
  const ids = text ? tokenizer.encode(text) : [];
  if (ids.length > MOST_TOKENS) {
    const count = ids.length.toLocaleString("en");
    throw new Error(`the text has ${count} tokens; at most ${MOST_TOKENS.toLocaleString("en")} can be shown`);
  }
  return ids;
}

// A prompt of a language model: a document, or the first message of the user.
function encodePrompt(run, text) {
  const tokenizer = run.tokenizers.target;
  if (!run.dialogue) return [special(tokenizer, "start"), ...encode(tokenizer, text)];
  if (!text.trim()) throw new Error("message 1 ('') from the user is empty; leave the conversation out");
  return [special(tokenizer, "user"), ...encode(tokenizer, text), special(tokenizer, "end"), special(tokenizer, "assistant")];
}

// The name of the mask token stands for a word, with the space before it if the tokens have such spaces.
function encodeMasked(tokenizer, text) {
  const mask = special(tokenizer, "mask");
  const parts = text.split(tokenizer.piece(mask));
  const last = encode(tokenizer, parts.pop());
  const spaced = Array.from({ length: tokenizer.size }, (_, id) => tokenizer.piece(id)).some((piece) => /^ ./su.test(piece));
  const before = parts.map((part) => (spaced ? part.replace(/ $/, "") : part));
  return [...before.flatMap((part) => [...encode(tokenizer, part), mask]), ...last];
}

function writeTarget(run, m, source) {
  const { target } = run.tokenizers;
  const end = special(target, "end");
  const most = Math.min(source.length + EXTRA_TOKENS, limitOf(run) - 1);
  return greedy(m, start(m, { source, target: [special(target, "start")] }), { end, most }).filter((id) => id !== end);
}

// Appends up to `count` tokens that a language model writes greedily.
export function continueText(run, m, inputs, count) {
  const read = inputs.ids.target;
  const most = Math.min(count, limitOf(run) - read.length);
  if (most < 1) return inputs;
  const end = special(run.tokenizers.target, "end");
  const written = greedy(m, start(m, { target: read }), { end, most }).filter((id) => id !== end);
  return named(run, inputs.text, inputs.target, { target: [...read, ...written] }, written.length);
}
