// Decoding step by step: the candidates of a greedy search, and the tree of a beam search, as inspect/decoding.py.

import { limitOf, special } from "../inputs.js";
import { whole, word } from "../names.js";
import { beam as beamSearch, greedy } from "../search.js";
import { forward, start } from "../model.js";
import { modelOf } from "../trace.js";
import { argmax, at, softmax, topk } from "../tensor.js";

const CANDIDATES = 6; // of a greedy step
const MOST_WRITTEN = 60; // tokens, the end included
const MOST_IN_WHOLE_PASSES = 12; // tokens by which a text is continued without a cache, or as a tree
const WIDEST_BEAM = 8;
const NO_POSITIONS =
  "beam search reads one token at a time, so a change at single positions of the decoder cannot be applied to it; " +
  "undo that change, or look at Decoding";

// The model with the changes of a pass, what it reads before it writes, and when it ends.
function begin(run, { inputs, changes }, most = MOST_WRITTEN) {
  if (run.config.family === "encoder-only") {
    throw new Error("an encoder-only model writes no text; look at its answer instead");
  }
  const { source, target } = inputs.ids;
  const prompt = source ? target.slice(0, 1) : target;
  const limit = limitOf(run);
  if (limit <= prompt.length) {
    throw new Error(`the text has all ${limit} positions that this model can read; shorten it to continue it`);
  }
  const ending = { end: special(run.tokenizers.target, "end"), most: Math.min(most, limit - prompt.length) };
  const m = modelOf(run, changes);
  return [m, start(m, { source, target: prompt }), ending];
}

export async function decode(engine, { trace }) {
  const pass = engine.passes.get(trace);
  return { steps: greedySteps(await pass.run(), pass) };
}

// The likeliest tokens of each step with their probabilities; the first of them is written.
export function greedySteps(run, pass, most = MOST_WRITTEN) {
  const steps = [];
  const observe = ({ data }) => {
    const ids = topk(data, CANDIDATES);
    const probabilities = softmax(data);
    steps.push({ id: ids[0], words: ids.map((id) => word(run.tokenizers.target, id)), probabilities: ids.map((id) => probabilities[id]) });
  };
  if (atPositions(pass.changes)) writeInWholePasses(run, pass, observe);
  else greedy(...begin(run, pass, most), observe);
  return steps;
}

// Whether changes hold for single positions of the decoder, which a decode step of one token does not have.
function atPositions(changes) {
  const inside = Object.entries(changes).filter(([name]) => !name.startsWith("encoder")).flatMap(([, some]) => some);
  const axes = ["token", "query", "key"];
  return inside.some(({ kind, at: places = {} }) => kind === "shuffle" || axes.some((axis) => axis in places));
}

// A whole forward pass for each token, so that every position is there; the target is padded to its final length.
function writeInWholePasses(run, { inputs, changes }, observe) {
  const { source, target } = inputs.ids;
  const { end, pad } = run.tokenizers.target.special;
  const read = source ? 1 : target.length;
  const length = source ? target.length : read + MOST_IN_WHOLE_PASSES;
  const ids = [...target.slice(0, read), ...Array(length - read).fill(pad)];
  const m = modelOf(run, changes);
  for (let place = read; place <= length; place += 1) {
    const logits = at(forward(m, { source, target: ids }), place - 1);
    observe(logits);
    const written = argmax(logits.data);
    if (written === end || place === length) return;
    ids[place] = written;
  }
}

const mostWritten = ({ config }) => (config.family === "encoder-decoder" ? MOST_WRITTEN : MOST_IN_WHOLE_PASSES);

// What a model writes greedily, with the changes of a pass, and whether it came to an end.
export function writtenBy(run, pass) {
  const ids = greedySteps(run, pass, mostWritten(run)).map(({ id }) => id);
  const { end } = run.tokenizers.target.special;
  return [run.tokenizers.target.decode(ids.filter((id) => id !== end)), ids.at(-1) === end];
}

// All hypotheses of a beam search as nodes of a tree, and the texts of the complete ones, the best first.
export async function beam(engine, { trace, width: asked }) {
  const pass = engine.passes.get(trace);
  const run = await pass.run();
  const width = whole("width", asked, 100);
  if (width < 1 || width > WIDEST_BEAM) throw new Error(`width = ${width}: expected 1 to ${WIDEST_BEAM}`);
  if (atPositions(pass.changes)) throw new Error(NO_POSITIONS);
  const totals = new Map(); // ids of a hypothesis -> its log-probability
  const keep = (open) => open.forEach(({ ids, total }) => totals.set(ids.join(), { ids, total }));
  const best = beamSearch(...begin(run, pass, mostWritten(run)), width, keep);
  best.forEach(({ ids, total }) => totals.has(ids.join()) || totals.set(ids.join(), { ids, total }));
  const { end } = run.tokenizers.target.special;
  const sorted = [...totals.values()].sort((a, b) => a.ids.length - b.ids.length);
  const numbers = new Map(sorted.map(({ ids }, number) => [ids.join(), number]));
  const ranks = new Map(best.map(({ ids }, rank) => [ids.join(), rank]));
  const nodes = sorted.map(({ ids, total }) => {
    const rank = ranks.get(ids.join()) ?? -1;
    const parent = numbers.get(ids.slice(0, -1).join()) ?? -1;
    const score = rank < 0 ? null : best[rank].score;
    return { word: word(run.tokenizers.target, ids.at(-1)), parent, depth: ids.length, total, rank, score };
  });
  return { nodes, texts: best.map(({ ids }) => run.tokenizers.target.decode(ids.filter((id) => id !== end))) };
}
