// The passes of texts through models: ids and changes are kept; of the tensors, the most recently used up to a limit.

import { changed, changedWeights } from "./patch.js";
import { blockOf, blockOutput, matches } from "./names.js";
import { forward } from "./model.js";
import { tensor } from "./tensor.js";

const MOST_BYTES = 512e6; // of the tensors of all passes
const WHOLE_PASS_BYTES = 2 ** 28; // a pass that is expected to take more keeps only the tensors that are asked for
const MOST_PASSES = 200;
const THUMBNAIL = 64; // rows and columns

// What a function of the model needs. Without `see`, nothing observes the tensors.
export function modelOf(run, changes = {}, see = () => {}, known = undefined) {
  const weights = changedWeights(run, run.weights, changes);
  const tap = (name, value) => {
    if (!run.tensors[name]) return value;
    const after = changed(run, name, value, changes);
    see(name, after);
    return after;
  };
  return { config: run.config, weights, tap, known };
}

// A model in which the changes of parameters apply, but not those of tensors: to compute with its modules alone.
export const modulesOf = (run, changes) => ({ ...modelOf(run, changes), tap: (_, value) => value });

// One pass of ids: calls `see` with each tensor. Blocks before the first that is changed are taken from `base`, a pass
// of the same tokens without changes.
export function capture(run, inputs, changes, see, base = null) {
  forward(modelOf(run, changes, see, base && unchangedBlocks(run, changes, base, see)), inputs.ids);
}

function unchangedBlocks(run, changes, base, see) {
  const names = Object.keys(run.tensors).filter((name) => name.includes(".blocks."));
  const all = [...Object.keys(run.tensors), ...Object.keys(run.parameters)];
  const affected = new Set(all.filter((name) => Object.keys(changes).some((pattern) => matches(name, pattern))).map(blockOf));
  const blocks = [...new Set(names.map(blockOf))];
  if (![...affected].every((block) => blocks.includes(block))) return undefined;
  const first = blocks.findIndex((block) => affected.has(block) || !base.has(blockOutput(block)));
  const before = new Set(blocks.slice(0, first));
  return (block) => {
    if (!before.has(block)) return undefined;
    for (const [name, value] of base) if (blockOf(name) === block) see(name, value);
    return base.get(blockOutput(block));
  };
}

export class Passes {
  constructor() {
    this.byId = new Map(); // id -> {run, inputs, changes, before}; `run` is a function, since snapshots are loaded and freed
    this.count = 0; // that were ever added
    this.traces = new Map(); // id -> {run, inputs, changes, tensors}, the least recently used first
  }

  get(id) {
    const found = this.byId.get(id);
    if (!found) throw new Error(`trace '${id}' is not known any more; load the page again`);
    return found;
  }

  add(id, pass) {
    this.byId.set(id, pass);
    this.count += 1;
    if (this.byId.size <= MOST_PASSES) return;
    const [oldest] = this.byId.keys();
    this.byId.delete(oldest);
    this.traces.delete(oldest);
  }

  // A trace that has these tensors: all of them, or of a long text only these.
  async part(id, ...names) {
    const pass = this.get(id);
    const run = await pass.run();
    let trace = this.traces.get(id);
    if (!trace || trace.run.weights !== run.weights || !names.every((name) => trace.tensors.has(name))) {
      trace = { run, inputs: pass.inputs, changes: pass.changes, tensors: new Map() };
      const wanted = fits(run, pass.inputs) ? null : new Set(names);
      const before = this.traces.get(pass.before);
      const base = !wanted && before?.run.weights === run.weights ? before.tensors : null;
      const keep = (name, value) => (!wanted || wanted.has(name)) && trace.tensors.set(name, value);
      capture(run, pass.inputs, pass.changes, keep, base);
    }
    this.traces.delete(id);
    this.traces.set(id, trace);
    this.evict();
    return trace;
  }

  // Large tensors of a pass, each shrunk as soon as it is computed.
  async thumbnails(id, names) {
    const pass = this.get(id);
    const run = await pass.run();
    if (fits(run, pass.inputs)) return this.part(id, ...names);
    const tensors = new Map();
    const see = (name, value) => names.includes(name) && tensors.set(name, value.shape.length > 1 ? shrunk(value) : value);
    capture(run, pass.inputs, pass.changes, see);
    return { run, inputs: pass.inputs, changes: pass.changes, tensors };
  }

  evict() {
    const kept = () => [...this.traces.values()].flatMap(({ tensors }) => [...tensors.values()]);
    const bytes = () => kept().reduce((sum, { data }) => sum + data.byteLength, 0);
    while (this.traces.size > 1 && bytes() > MOST_BYTES) this.traces.delete(this.traces.keys().next().value);
  }
}

// Whether all tensors of a pass can be kept, by an estimate of their size.
export function fits({ config, about }, inputs) {
  const tokens = Math.max(...Object.values(inputs.ids).map((ids) => ids.length));
  const blocks = about.stacks.reduce((sum, { layers }) => sum + layers, 0);
  const attentions = config.family === "encoder-decoder" ? 2 * blocks : blocks;
  const squares = attentions * config.heads * tokens ** 2 * 9; // as in Python, where a mask takes 1 byte
  const streams = (attentions + blocks) * tokens * 4 * (6 * config.d_model + 3 * config.d_ff);
  return squares + streams + 4 * tokens * config.vocab <= WHOLE_PASS_BYTES;
}

// A tensor whose last two axes have at most THUMBNAIL entries, each the maximum of a patch.
export function shrunk(value) {
  const [rows, columns] = value.shape.slice(-2);
  if (Math.max(rows, columns) <= THUMBNAIL) return value;
  const [height, width] = [rows, columns].map((count) => Math.min(count, THUMBNAIL));
  const outer = value.shape.slice(0, -2);
  const small = tensor([...outer, height, width]);
  const edges = (count, size, i) => [Math.floor((i * count) / size), Math.ceil(((i + 1) * count) / size)];
  for (let place = 0; place < small.data.length; place += 1) {
    const [top, bottom] = edges(rows, height, Math.floor(place / width) % height);
    const [left, right] = edges(columns, width, place % width);
    const start = Math.floor(place / (height * width)) * rows * columns;
    let most = -Infinity;
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) most = Math.max(most, value.data[start + row * columns + column]);
    }
    small.data[place] = most;
  }
  return small;
}

