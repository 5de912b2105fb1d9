// Ways to interpret a trace: logit lens, contributions to a logit, attention rollout, as inspect/lens.py.

import { MOST_TOKENS } from "../inputs.js";
import { blockOutput, kindOf, labelsOf, lastStack, stackOf, whole } from "../names.js";
import { head, layersOf, norm, pool } from "../model.js";
import { changedWeights } from "../patch.js";
import { fits, modulesOf } from "../trace.js";
import { at, dot, rowsOf, softmax, topk } from "../tensor.js";

const MOST_PARTS = 14; // contributions to a logit
const MOST_LINKED = 80; // tokens that lines are drawn between
const LIKELIEST = 3;

function checkLogits({ run, tensors }, position, choice) {
  if (run.config.head === "embedding") {
    throw new Error("model.head = 'embedding': this model has no logits; look at 'pooled' instead");
  }
  const { shape } = tensors.get("head.logits");
  if (shape.length > 1 && position >= shape[0]) {
    throw new Error(`position ${position}: there are ${shape[0]} tokens, counted from 0`);
  }
  if (choice >= shape.at(-1)) {
    throw new Error(`choice ${choice}: there are ${shape.at(-1).toLocaleString("en")} logits, counted from 0`);
  }
}

// The logit lens: the likeliest tokens, or classes, after each layer.
export async function lens(engine, { trace, token }) {
  const run = await engine.passes.get(trace).run();
  const name = lastStack(run);
  const [first, ...added] = stackOf(run, name).stream;
  const streams = [first, ...added.filter((each) => kindOf(each) === "feed_forward_add_norm")];
  const output = run.tensors["head.logits"] ? ["head.logits"] : [];
  const part = await engine.passes.part(trace, ...output, ...streams);
  checkLogits(part, 0, 0);
  const position = whole("token", token, part.tensors.get(first).shape[0]);
  const m = modulesOf(run, part.changes);
  const words = run.config.head === "vocabulary";
  const labels = labelsOf(run, part.inputs, "head.logits", words ? "word" : "class", part.tensors.get("head.logits").shape.at(-1));
  const layers = streams.map((stream) => {
    const x = part.tensors.get(stream);
    const read = words ? at(x, position) : x;
    const normed = run.config.norm_order === "pre" ? norm(m, `${name}.norm`, read) : read;
    const probabilities = softmax(head(m, words ? normed : pool(m, normed)).data);
    return { name: stream, best: topk(probabilities, LIKELIEST).map((i) => [labels[i], probabilities[i]]) };
  });
  return { layers };
}

// The largest contributions to a logit, positive and negative.
export async function why(engine, { trace, token, choice }) {
  const run = await engine.passes.get(trace).run();
  const names = Object.keys(run.tensors).filter((name) => run.kinds[run.tensors[name].kind].in_logit);
  const part = await engine.passes.part(trace, ...names);
  const [number, position] = [whole("choice", choice, 10 ** 8), whole("token", token, MOST_TOKENS)];
  checkLogits(part, position, number);
  if (run.config.head_dense) {
    throw new Error("model.head_dense = true: the head has a nonlinearity, so a logit is not a sum of parts; use saliency");
  }
  const logits = part.tensors.get("head.logits");
  const weights = changedWeights(run, run.weights, part.changes);
  const words = run.config.head === "vocabulary";
  const vectors = streamParts(part, weights, words ? position : null);
  const direction = at(weights["head.project.weight"], number).data;
  const weigh = (rows) => dot(run.config.pool === "first" || words ? rows[0] : meanOf(rows), direction);
  const parts = [...vectors].map(([name, rows]) => [name, weigh(rows)]);
  const bias = weights["head.project.bias"];
  if (bias) parts.push(["head.project.bias", bias.data[number]]);
  parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return { logit: (words ? at(logits, position) : logits).data[number], parts: parts.slice(0, MOST_PARTS) };
}

const meanOf = (rows) => rows[0].map((_, c) => rows.reduce((sum, row) => sum + row[c], 0) / rows.length);

// The output of a stack as a sum of named parts, each of them rows of float64: of one position, or of all (null).
function streamParts({ run, tensors }, weights, where) {
  const name = lastStack(run);
  const parts = new Map();
  const rows = (tensorName) => {
    const found = rowsOf(tensors.get(tensorName));
    return where === null ? found : [found[where]];
  };
  const put = (tensorName) => parts.set(tensorName, rows(tensorName).map((row) => Float64Array.from(row)));
  put(`${name}.embedding`);
  if (["sinusoidal", "learned"].includes(run.config.position)) put(`${name}.position`);
  if (run.config.segments) put(`${name}.segment`);
  const normalise = (normName, wholeName) => normalised(run, parts, weights, normName, rows(wholeName));
  if (run.config.embedding_norm) normalise(`${name}.embedding_norm`, `${name}.sum`);
  const layers = layersOf(run.config, name);
  for (let layer = 0; layer < layers; layer += 1) {
    for (const sublayer of stackOf(run, name).sublayers) {
      const path = `${name}.blocks.${layer}.${sublayer}`;
      if (sublayer === "feed_forward") put(path);
      else addHeads(parts, weights, path, tensors.get(`${path}.head_outputs`), where);
      if (run.config.norm_order === "post") normalise(`${path}_add_norm.norm`, `${path}_add_norm.added`);
    }
  }
  if (run.config.norm_order === "pre") normalise(`${name}.norm`, blockOutput(`${name}.blocks.${layers - 1}`));
  return parts;
}

// Applies a norm to every part, with the standard deviation of the whole stream; so it is linear.
function normalised({ config }, parts, weights, name, wholes) {
  const gain = weights[`${name}.weight`].data;
  const centre = (row) => {
    const mean = config.norm === "layer" ? row.reduce((a, b) => a + b, 0) / row.length : 0;
    return Float64Array.from(row, (value) => value - mean);
  };
  const deviations = wholes.map(centre).map((row) => Math.sqrt(dot(row, row) / row.length + config.norm_epsilon));
  for (const [part, rows] of parts) {
    parts.set(part, rows.map((row, i) => centre(row).map((value, c) => (value / deviations[i]) * gain[c])));
  }
  const bias = weights[`${name}.bias`];
  if (bias) parts.set(`${name}.bias`, wholes.map(() => Float64Array.from(bias.data)));
}

// The output of each head: its columns of the output matrix times its vectors.
function addHeads(parts, weights, name, outputs, where) {
  const matrix = weights[`${name}.out.weight`];
  const [heads, tokens, size] = outputs.shape;
  const places = where === null ? [...Array(tokens).keys()] : [where];
  for (let i = 0; i < heads; i += 1) {
    const rows = places.map((t) => rowsOf(matrix).map((row) => dot(row.subarray(i * size, (i + 1) * size), at(outputs, i, t).data)));
    parts.set(`${name} head ${i}`, rows.map((row) => Float64Array.from(row)));
  }
  const bias = weights[`${name}.out.bias`];
  if (bias) parts.set(`${name}.out.bias`, places.map(() => Float64Array.from(bias.data)));
}

// Attention rollout after the last layer, for the first tokens.
export async function rollout(engine, { trace, stack }) {
  const pass = engine.passes.get(trace);
  const run = await pass.run();
  if (!fits(run, pass.inputs)) throw new Error("this text is too long for rollout, which needs all attention weights at once");
  const { layers } = stackOf(run, stack);
  const { tensors } = await engine.passes.part(trace, `${stack}.blocks.0.attention.weights`);
  const rowsOfLayer = (layer) => meanWithSelf(tensors.get(`${stack}.blocks.${layer}.attention.weights`));
  let share = rowsOfLayer(layers - 1).slice(0, MOST_LINKED); // from the last layer back, since only these rows are shown
  for (let layer = layers - 2; layer >= 0; layer -= 1) {
    const rows = rowsOfLayer(layer);
    share = share.map((row) => combined(row, rows));
  }
  const left = share.map((row) => row.slice(0, MOST_LINKED));
  return { shape: [left.length, left[0].length], data: left.flatMap((row) => Array.from(row)) };
}

// The mean of the identity, for the residual stream, and of the weights averaged over heads; each row sums to 1.
function meanWithSelf(weights) {
  const [heads, tokens] = weights.shape;
  return Array.from({ length: tokens }, (_, t) => {
    const row = new Float64Array(tokens);
    for (let i = 0; i < heads; i += 1) at(weights, i, t).data.forEach((value, key) => (row[key] += value / heads));
    row[t] += 1;
    const sum = row.reduce((a, b) => a + b, 0);
    return row.map((value) => value / sum);
  });
}

// The sum of rows, each with a weight.
function combined(weights, rows) {
  const sum = new Float64Array(rows[0].length);
  weights.forEach((weight, i) => rows[i].forEach((value, c) => (sum[c] += weight * value)));
  return sum;
}

export function saliency() {
  throw new Error("Gradients are not computed in a published page; `clearhead explore RUN` shows them.");
}
