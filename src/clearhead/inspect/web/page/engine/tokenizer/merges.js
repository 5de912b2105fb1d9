// How a tokenizer arrives at its tokens: the merges of byte-pair encoding one by one, as inspect/web/merges.py.

import { BytePairs } from "./bpe.js";
import { readable, spelled } from "./bytes.js";
import { matches } from "./patterns.js";
import { GPT2_WORDS } from "./pretokenizers.js";

const MOST_WORDS = 60; // that are replayed

// For each word, its pieces from single bytes to tokens, merge by merge. Empty for a tokenizer that is not byte-level, or
// that changes the text first or splits words differently.
export function replay(tokenizer, text) {
  const { model } = tokenizer;
  if (!(model instanceof BytePairs) || !tokenizer.byteLevel) return [];
  const replayed = [];
  for (const [begin, end] of matches(text, GPT2_WORDS)) {
    if (replayed.length === MOST_WORDS) break;
    const word = text.slice(begin, end);
    const steps = [...stepsOf(model, spelled(word))];
    const ids = tokenizer.encode(word);
    const same = steps.at(-1).length === ids.length && steps.at(-1).every((token, i) => model.ids.get(token) === ids[i]);
    if (!same) return [];
    replayed.push(steps.map((tokens) => tokens.map(readable)));
  }
  return replayed;
}

// The pair that was learned first, the leftmost of them, is merged, until there is none.
function* stepsOf(model, word) {
  let tokens = Array.from(word);
  while (true) {
    yield tokens;
    const ranks = tokens.slice(1).map((token, place) => model.rank(tokens[place], token) ?? Infinity);
    const best = ranks.reduce((least, rank) => Math.min(least, rank), Infinity);
    if (best === Infinity) return;
    const place = ranks.indexOf(best);
    tokens = [...tokens.slice(0, place), tokens[place] + tokens[place + 1], ...tokens.slice(place + 2)];
  }
}
