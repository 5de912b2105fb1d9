// From a tensor's name to its picture: which tokens stand at its edges, and what its cells say when they are pointed at.

import { matrix } from "./matrix.js";
import { tensor } from "./data.js";
import { explain, tell } from "./inspector.js";
import { names, places } from "./tokens.js";

export const LOOKS_AHEAD =
  "A row is the token that the decoder has just read, and shows where it looks to write the next one. From “the car” to “la voiture”, the row of “la” looks at “car”, because “voiture” comes next.";

// A matrix with tokens at its edges. options: down, across: a side ("source"), or what to call a column ("channel");
// index: where in the tensor's first axes it lies; the rest goes to the matrix.
export async function tensorMatrix(context, name, options) {
  const { trace } = context;
  const index = options.index ?? [];
  const found = options.found ?? (await tensor(trace.id, name, index.join(",")));
  const [rows, columns] = found.shape.length === 1 ? [1, found.shape[0]] : found.shape;
  const edge = (what, size) =>
    trace.tokens[what]
      ? { names: names(trace, what), tokens: places(trace, what) }
      : { names: Array.from({ length: size }, (_, i) => `${what} ${i}`), tokens: [] };
  const [down, across] = [edge(options.down, rows), edge(options.across, columns)];
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
      if (document.getElementById("inspector").dataset.tensor !== name) tell(trace, name);
      explain(trace, name, found.shape.length === 1 ? [...index, column] : [...index, row, column]);
    },
    ...options,
  });
}

// The token in question: the one that was picked, else a hidden word, else the last one of a side.
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

// Values of a row of logits, as probabilities at a temperature.
export function softmax(logits, temperature = 1) {
  let most = -Infinity;
  for (const value of logits) most = Math.max(most, value);
  const found = Float64Array.from(logits, (value) => Math.exp((value - most) / temperature));
  const sum = found.reduce((a, b) => a + b, 0);
  return found.map((value) => value / sum);
}

// The dot product of two vectors; a plain loop, because there are many of them.
export function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
  return sum;
}

export function lengthOf(vector) {
  return Math.sqrt(dot(vector, vector));
}
