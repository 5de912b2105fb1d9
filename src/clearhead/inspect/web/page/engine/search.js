// Search: which tokens to write, greedily or with a beam, as decode/search.py and beam.py for one sentence.

import { fork, step } from "./model.js";
import { argmax, logSoftmax, topk } from "./tensor.js";

export const EXTRA_TOKENS = 50; // length limit of a translation: tokens of its source + 50
const LENGTH_PENALTY = 0.6; // the paper's alpha

// Writes the likeliest token at each step, the end included. `observe` sees the logits of each step.
export function greedy(m, [logits, state], { end, most }, observe = () => {}) {
  const ids = [];
  for (;;) {
    observe(logits);
    ids.push(argmax(logits.data));
    if (ids.at(-1) === end || ids.length === most) return ids;
    logits = step(m, ids.slice(-1), state);
  }
}

// The paper's length penalty: a longer text may be less likely.
const penalty = (length) => ((5 + length) / 6) ** LENGTH_PENALTY;

// The `width` best texts, the best first: {ids, total, score}, the end included. `observe` sees the open ones of each step.
export function beam(m, [logits, state], { end, most }, width, observe) {
  let open = [{ ids: [], total: 0, logits, state }];
  let complete = [];
  for (let length = 1; ; length += 1) {
    const last = length === most;
    const all = open.flatMap((from) => continuations(from, width + 1)).sort((a, b) => b.total - a.total);
    const ends = ({ ids }) => last || ids.at(-1) === end;
    const ended = all.slice(0, width).filter(ends).map((each) => ({ ...each, score: each.total / penalty(length) }));
    complete = [...complete, ...ended].sort((a, b) => b.score - a.score).slice(0, width);
    open = all.filter((each) => !ends(each)).slice(0, width);
    if (isFinal(complete, open, width, most)) {
      observe([]);
      return complete;
    }
    observe(open);
    for (const each of open) {
      each.state = fork(each.from.state);
      each.logits = step(m, each.ids.slice(-1), each.state);
    }
  }
}

function continuations(from, count) {
  const row = logSoftmax(from.logits.data);
  return topk(row, Math.min(count, row.length)).map((id) => ({ ids: [...from.ids, id], total: from.total + row[id], from }));
}

// Whether no open text can become one of the best: all places are taken by likelier ones, or by scores out of its reach.
function isFinal(complete, open, width, most) {
  if (!open.length) return true;
  if (complete.length < width) return false;
  const likelier = Math.min(...complete.map(({ total }) => total)) >= open[0].total;
  return likelier || open[0].total / penalty(most) <= complete.at(-1).score;
}
