// What the page draws: tensors, the boxes of the diagram, positions, embeddings in the plane.

import { axesOf, blockOf, blockOutput, entryOf, kindOf, sideOf, sideOfStack, stackOf, whole, word } from "../names.js";
import { MOST_TOKENS, tokenizerOf } from "../inputs.js";
import { fits, shrunk } from "../trace.js";
import { positions } from "../model.js";
import { at, length, product, rowsOf, softmax, tensor as made, topk } from "../tensor.js";
import { leadingDirections } from "../plane.js";

const LANES = 24; // tokens of a stack that are drawn, one lane each
const CHANNELS = 16; // of a vector in a box
const CANDIDATES = 6; // for the next token
const OUTSIDE = ["embedding", "position", "embedding_norm", "norm", "pooled"];
const INSIDE = ["weights", "inner", "norm", "added"];
const MOST_WORDS = 800; // of the map of embeddings, not counting the tokens of the text
const NEIGHBOURS = 6;
const MOST_LOOKED_UP = 24; // different tokens of the text whose neighbours are looked up

export async function tensor(engine, { trace, name, index = "", small = "" }) {
  const [found] = await tensors(engine, { trace, names: name, indices: index, small });
  return found;
}

// Several tensors, "NAME,NAME", each with an index, "0,3;1"; `small`: thumbnails.
export async function tensors(engine, { trace, names, indices = "", small = "" }) {
  const wanted = names.split(",");
  const places = indices ? indices.split(";") : wanted.map(() => "");
  if (places.length !== wanted.length) throw new Error(`indices '${indices.slice(0, 99)}': ${places.length} for ${wanted.length} tensors`);
  const pass = engine.passes.get(trace);
  const run = await pass.run();
  wanted.forEach((name) => entryOf(run, name));
  const several = new Set(wanted.map(blockOf)).size > 1 && small && !fits(run, pass.inputs);
  const part = several ? await engine.passes.thumbnails(trace, wanted) : await engine.passes.part(trace, ...wanted);
  return wanted.map((name, i) => cut(part.tensors.get(name), places[i], small));
}

function cut(value, index, small) {
  const picked = index.split(",").filter(Boolean).map((each, axis) => whole("index", each, value.shape[axis] ?? 0));
  const found = at(value, ...picked);
  return small && found.shape.length > 1 ? shrunk(found) : found;
}

// The norm of each token's vector, at each state of the residual stream.
export async function lengths(engine, { trace, stack }) {
  const run = await engine.passes.get(trace).run();
  const names = stackOf(run, stack).stream;
  const part = await engine.passes.part(trace, ...names);
  return Object.fromEntries(names.map((name) => [name, rowsOf(part.tensors.get(name)).map(length)]));
}

// The vectors of the first positions of a stack; with rotary positions, the cosines of their angles.
export async function waves(engine, { run: number, stack, count }) {
  const run = await engine.run(number);
  stackOf(run, stack);
  const { position, max_length: limit } = run.config;
  const asked = whole("count", count, 513);
  const found = positions(run, `${stack}.position`, 0, position === "learned" ? Math.min(asked, limit) : asked);
  const vectors = position === "rotary" ? at(found, 0, 0) : found;
  return { shape: vectors.shape, data: rowsOf(vectors).map((row) => Array.from(row, (x) => Math.round(x * 1e4) / 1e4)) };
}

// The tensors in the boxes of the diagram; `layer`: only this block of each stack is drawn in full.
export async function diagram(engine, { trace, layer = "", first = "0" }) {
  const open = layer === "" ? null : whole("layer", layer, 1000);
  const run = await engine.passes.get(trace).run();
  const names = Object.keys(run.tensors).filter((name) => isDrawn(name, open));
  const part = await engine.passes.part(trace, ...names, ...(run.config.head === "vocabulary" ? ["head.logits"] : []));
  const from = whole("first", first, MOST_TOKENS);
  const starts = {};
  for (const [side, ids] of Object.entries(part.inputs.ids)) starts[side] = Math.max(0, Math.min(from, ids.length - LANES));
  const boxes = names.map((name) => [name, drawBox(run, name, part.tensors.get(name), starts)]);
  return { first: starts, boxes: Object.fromEntries(boxes.filter(([, box]) => box)), outputs: outputs(part, starts) };
}

function isDrawn(name, layer) {
  if (name.startsWith("head.")) return false;
  if (!name.includes(".blocks.")) return name.split(".").length < 3 && OUTSIDE.includes(kindOf(name));
  const block = blockOf(name);
  const isOpen = layer === null || block.endsWith(`.${layer}`);
  return name === blockOutput(block) || (isOpen && (INSIDE.includes(kindOf(name)) || name.endsWith("_add_norm")));
}

// Of each vector CHANNELS numbers, of attention all weights.
function drawBox(run, name, value, starts) {
  const axes = axesOf(run, name, value.shape.length);
  if (["pair", "part"].includes(axes.at(-1))) return null; // the angles of rotary positions are no vectors of tokens
  axes.forEach((axis, place) => {
    const side = sideOf(run, name, axis);
    if (side) value = narrowed(value, place, starts[side]);
  });
  if (axes.at(-1) === "neuron") value = grouped(value, (group) => group.reduce((a, b) => (b > a ? b : a)));
  else if (axes.at(-1) !== "key") value = grouped(value, (group) => group.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)));
  return { shape: value.shape, data: Array.from(value.data, (x) => Math.round(x * 1000) / 1000) };
}

// LANES indices of an axis from `start` on.
function narrowed({ shape, data }, axis, start) {
  const count = Math.min(LANES, shape[axis]);
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const left = made(shape.map((size, place) => (place === axis ? count : size)));
  for (let outer = 0; outer * shape[axis] * inner < data.length; outer += 1) {
    const from = (outer * shape[axis] + start) * inner;
    left.data.set(data.subarray(from, from + count * inner), outer * count * inner);
  }
  return left;
}

// Of each group of neighbouring channels the chosen one.
function grouped(value, choose) {
  const width = value.shape.at(-1);
  if (width <= CHANNELS) return value;
  const sizes = Array.from({ length: CHANNELS }, (_, i) => Math.floor(width / CHANNELS) + (i < width % CHANNELS ? 1 : 0));
  const small = made([...value.shape.slice(0, -1), CHANNELS]);
  rowsOf(value).forEach((row, place) => {
    let start = 0;
    sizes.forEach((size, i) => {
      small.data[place * CHANNELS + i] = choose(row.subarray(start, start + size));
      start += size;
    });
  });
  return small;
}

// The likeliest tokens at each lane with their probabilities; none without a vocabulary to choose from.
function outputs({ run, tensors: found }, starts) {
  const logits = found.get("head.logits");
  if (!logits || logits.shape.length < 2) return [];
  const start = starts.target ?? starts.source;
  return rowsOf(logits).slice(start, start + LANES).map((row) => {
    const probabilities = softmax(row);
    return topk(row, CANDIDATES).map((id) => [word(run.tokenizers.target, id), probabilities[id]]);
  });
}

async function embeddings(engine, trace, stack) {
  const pass = engine.passes.get(trace);
  const run = await pass.run();
  stackOf(run, stack);
  const side = sideOfStack(stack);
  return { table: run.weights[`${stack}.embedding.weight`], tokenizer: tokenizerOf(run, side), ids: pass.inputs.ids[side] };
}

// The embeddings of the text's tokens and of others, projected onto their first two principal components.
export async function words(engine, { trace, stack }) {
  const { table, tokenizer, ids } = await embeddings(engine, trace, stack);
  const [count, width] = table.shape;
  const each = Math.max(1, Math.floor(count / MOST_WORDS));
  const shown = [...new Set([...ids, ...Array.from({ length: Math.ceil(count / each) }, (_, i) => i * each)])].sort((a, b) => a - b);
  const mean = new Float64Array(width);
  for (const id of shown) at(table, id).data.forEach((value, c) => (mean[c] += value / shown.length));
  const centred = shown.map((id) => Float64Array.from(at(table, id).data, (value, c) => value - mean[c]));
  const { points, share } = leadingDirections(centred);
  return { ids: shown, words: shown.map((id) => word(tokenizer, id)), points, share };
}

// For each token of the text, the tokens with the most similar embeddings.
export async function near(engine, { trace, stack }) {
  const { table, tokenizer, ids } = await embeddings(engine, trace, stack);
  const asked = [...new Set(ids)].slice(0, MOST_LOOKED_UP);
  const norms = rowsOf(table).map(length);
  const found = asked.map((id) => {
    const cosines = product(at(table, id), table).data.map((value, other) => value / norms[id] / norms[other]);
    const best = topk(cosines, NEIGHBOURS + 1).filter((other) => other !== id).slice(0, NEIGHBOURS);
    return [id, best.map((other) => [word(tokenizer, other), cosines[other]])];
  });
  return Object.fromEntries(found);
}
