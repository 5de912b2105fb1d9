// Pictures of tensors: the tokens at their edges, and the explanation of a cell that is pointed at.

import { matrix } from "./matrix.js";
import { tensor } from "./data.js";
import { explain, showTensor } from "./inspector.js";
import { names, tokenKeys } from "./tokens.js";

export const PREDICTS_NEXT =
  "Each row is a token that the decoder has just read, and shows what it attends to in order to predict the next one. From “the car” to “la voiture”, the row of “la” attends to “car”, because “voiture” comes next.";

// A tensor as a matrix. options: down, across: the side whose tokens are its rows or columns ("source"), or what they count
// ("channel"); index: along the tensor's first axes; all others are options of the matrix.
export async function tensorMatrix(context, name, options) {
  const { trace } = context;
  const index = options.index ?? [];
  const found = await minus(context, name, index, options.found ?? (await tensor(trace.id, name, index.join(","))));
  const [rows, columns] = found.shape.length === 1 ? [1, found.shape[0]] : found.shape;
  const edge = (what, size) =>
    trace.tokens[what]
      ? { names: names(trace, what), tokens: tokenKeys(trace, what) }
      : { names: Array.from({ length: size }, (_, i) => (size === 1 ? what : `${what} ${i}`)), tokens: [] };
  const down = edge(options.down, rows);
  const across = edge(options.across, columns);
  return matrix({
    rows,
    columns,
    values: found.data,
    rowNames: down.names,
    columnNames: trace.tokens[options.across] ? across.names : undefined,
    cellNames: across.names,
    rowTokens: down.tokens,
    columnTokens: across.tokens,
    label: name,
    onpoint: (row, column) => {
      if (document.getElementById("inspector").dataset.tensor !== name) showTensor(trace, name);
      explain(trace, name, found.shape.length === 1 ? [...index, column] : [...index, row, column]);
    },
    ...options,
    ...(context.minus && { palette: "signed", most: undefined }),
  });
}

// The cells of a tensor minus those of the same tensor in another trace, if the view is drawn as a difference.
export async function minus({ minus: other }, name, index, found) {
  if (!other) return found;
  const { data } = await tensor(other.id, name, index.join(","));
  return { shape: found.shape, data: found.data.map((value, i) => (value === data[i] ? 0 : value - data[i])) };
}

// The token that a view is about: the one that was chosen, or a masked one, or the last one of a side.
export function pickedToken({ state, trace, run }, side) {
  const { length } = trace.tokens[side];
  const hidden = trace.tokens[side].findIndex(({ piece, special }) => special && piece === run.mask);
  if (state.token < 0 && hidden >= 0) return hidden;
  return state.token >= 0 && state.token < length ? state.token : length - 1;
}

// The side that the model's head reads.
export function lastSide(trace) {
  return trace.tokens.target ? "target" : "source";
}

// (H, T, S) -> {rows, columns, data}: the mean over the heads.
export function meanOverHeads({ shape: [heads, rows, columns], data }) {
  const mean = new Array(rows * columns).fill(0);
  for (let head = 0; head < heads; head += 1) {
    for (let i = 0; i < mean.length; i += 1) mean[i] += data[head * mean.length + i] / heads;
  }
  return { rows, columns, data: mean };
}

// The probabilities of logits at a temperature.
export function softmax(logits, temperature = 1) {
  let most = -Infinity;
  for (const value of logits) most = Math.max(most, value);
  const found = Float64Array.from(logits, (value) => Math.exp((value - most) / temperature));
  const sum = found.reduce((a, b) => a + b, 0);
  return found.map((value) => value / sum);
}

// The dot product of two vectors; a loop, because it is called often.
export function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
  return sum;
}

export function lengthOf(vector) {
  return Math.sqrt(dot(vector, vector));
}
