// How one cell of each kind of tensor is computed: the twins of the functions in inspect/kinds/, under the names that
// run.json gives for a kind. Each returns {formula, numbers, value, terms}; a term is [label, factor, ...].
//
// `cell` has the name, the index of each axis, the parents, the module whose parameters enter, and what is around them.

import { fullAxes, kindOf, labelsOf, ownerOf, sideOfStack } from "./names.js";
import { ACTIVATIONS, slowed } from "./model.js";
import { at, call, fraction, number, power, root, row, signed, symbol, total } from "./formula.js";
import { dot } from "./tensor.js";

const WRITTEN_OUT = 3; // terms of a long sum

export class Cell {
  constructor({ run, inputs, tensors }, name, index, weights) {
    const { parents, module } = run.tensors[name];
    Object.assign(this, { run, inputs, tensors, weights, name, index, parents, module, config: run.config });
    this.owner = ownerOf(name);
    this.token = index.token ?? index.query ?? index.key ?? 0; // 0 for a vector that stands for the whole text
    this.last = Object.values(index).at(-1);
  }

  // The numbers of another tensor at these indices; axes without an index stay whole.
  part(name, places) {
    const { shape, data } = this.tensors.get(name);
    const known = fullAxes(this.run, name).filter((axis) => axis !== "batch");
    const axes = known.length === shape.length ? known : known.filter((axis) => axis !== "token");
    let starts = [0];
    axes.forEach((axis, i) => {
      const indices = axis in places ? [places[axis]] : [...Array(shape[i]).keys()];
      starts = starts.flatMap((start) => indices.map((index) => start * shape[i] + index));
    });
    return starts.map((place) => data[place]);
  }

  // Another tensor at the position of this cell, and in its head if both have heads.
  vector(name) {
    const heads = "head" in this.index ? { head: this.index.head } : {};
    return this.part(name, { token: this.token, query: this.token, key: this.token, ...heads });
  }

  // The channels of this cell's head in another tensor, which may have all heads side by side.
  headVector(name) {
    const all = this.vector(name);
    const size = this.config.head_size;
    const head = all.length > size ? this.index.head : 0;
    return all.slice(head * size, (head + 1) * size);
  }

  labels(name, axis, size) {
    return labelsOf(this.run, this.inputs, name, axis, size);
  }
}

const valueOf = ([, ...factors]) => factors.reduce((a, b) => a * b, 1);
const sumOfTerms = (terms) => terms.reduce((sum, term) => sum + valueOf(term), 0);

// A sum with its first terms written out.
function written(terms) {
  const parts = terms.slice(0, WRITTEN_OUT).flatMap(([, first, ...others], i) => {
    const digits = others.length ? 3 : 4;
    return [...(i ? ["+", signed(first, digits)] : [number(first, digits)]), ...others.flatMap((factor) => ["·", signed(factor, digits)])];
  });
  if (terms.length > WRITTEN_OUT) parts.push("+", symbol(`… ${terms.length - WRITTEN_OUT} more`));
  return row(...parts);
}

const summed = (formula, terms) => ({ formula, numbers: written(terms), value: sumOfTerms(terms), terms });

const products = (left, right, labels) => Array.from(left, (value, i) => [labels[i], value, right[i]]);

// The sum of tensors by the last words of their names.
const added = (names) => row(...names.flatMap((name, i) => [...(i ? ["+"] : []), symbol(kindOf(name))]));

const single = (formula, entry, label) => ({ formula, numbers: number(entry), value: entry, terms: [[label, entry]] });

// --- cell.py ---

function linear(cell, output, inputs, labels) {
  const { shape, data } = cell.weights[`${cell.module}.weight`];
  const bias = cell.weights[`${cell.module}.bias`]?.data[output];
  const terms = products(data.subarray(output * shape[1], (output + 1) * shape[1]), inputs, labels);
  const formula = total("c", row(at(symbol("W"), String(output), "c"), "·", at(symbol("x"), "c")));
  const numbers = written(terms);
  if (bias === undefined) return { formula, numbers, value: sumOfTerms(terms), terms };
  const all = [...terms, ["bias", bias]];
  const withBias = row(formula, "+", at(symbol("b"), String(output)));
  return { formula: withBias, numbers: row(numbers, "+", signed(bias, 3)), value: sumOfTerms(all), terms: all };
}

function explain_matrix(cell) {
  const [parent] = cell.parents;
  const inputs = cell.vector(parent);
  const axis = fullAxes(cell.run, parent).at(-1);
  const output = (cell.index.head ?? 0) * cell.config.head_size + cell.last;
  return linear(cell, output, inputs, inputs.map((_, i) => `${axis} ${i}`));
}

function explain_sum(cell) {
  return summed(added(cell.parents), cell.parents.map((parent) => [parent, cell.vector(parent)[cell.index.channel]]));
}

// --- embedding.py ---

function explain_embedding(cell) {
  const id = cell.inputs.ids[sideOfStack(cell.owner)][cell.token];
  const entry = cell.weights[`${cell.name}.weight`].data[id * cell.config.d_model + cell.index.channel];
  const formula = at(symbol("E"), String(id), "c");
  if (!cell.config.scale_embedding) return { ...single(formula, entry, `row ${id}`), terms: [[`row ${id}`, entry, 1]] };
  const scaled = row(formula, "·", root(number(cell.config.d_model)));
  return summed(scaled, [[`row ${id}`, entry, Math.sqrt(cell.config.d_model)]]);
}

function explain_table(cell) {
  const learned = cell.weights[`${cell.name}.table.weight`];
  const place = learned ? cell.token : 0;
  const { data } = learned ?? cell.weights[`${cell.name}.weight`];
  const entry = data[place * cell.config.d_model + cell.index.channel];
  return single(at(symbol("P"), String(place), "c"), entry, `row ${place}`);
}

function explain_sinusoidal_position(cell) {
  const { channel } = cell.index;
  return angle(cell, ["sin", "cos"][channel % 2], channel >> 1, cell.config.d_model, 10_000);
}

function explain_rotary_position(cell) {
  const { part, pair } = cell.index;
  const { head_size: size, rotary_base: base } = cell.config;
  return angle(cell, ["cos", "sin"][part], pair, size, base, slowed(cell.config, pair));
}

function angle(cell, name, pair, size, base, slower = 1) {
  const letters = power(number(base, 6), fraction(symbol("2i"), symbol("size")));
  const figures = power(number(base, 6), fraction(number(2 * pair), number(size)));
  const value = (slower * cell.token) / base ** ((2 * pair) / size);
  let formula = fraction(symbol("position"), letters);
  let numbers = fraction(number(cell.token), figures);
  if (slower !== 1) [formula, numbers] = [row(symbol("slowed"), "·", formula), row(number(slower), "·", numbers)];
  return { formula: call(name, formula), numbers: call(name, numbers), value: Math[name](value), terms: [["angle", value]] };
}

// --- norm.py ---

function explain_normalized(cell) {
  const [parent] = cell.parents;
  const vector = "head" in cell.index ? cell.headVector(parent) : cell.vector(parent);
  const value = vector[cell.index.channel];
  const centred = cell.config.norm === "layer";
  const mean = centred ? vector.reduce((a, b) => a + b, 0) / vector.length : 0;
  const variance = vector.reduce((sum, each) => sum + (each - mean) ** 2, 0) / vector.length;
  const epsilon = cell.config.norm_epsilon;
  const above = at(symbol("x"), "c");
  const below = root(row(symbol(centred ? "variance" : "mean of x²"), "+", symbol("ε")));
  return {
    formula: fraction(centred ? row(above, "−", symbol("mean")) : above, below),
    numbers: fraction(
      centred ? row(number(value), "−", signed(mean)) : number(value),
      root(row(number(variance), "+", number(epsilon))),
    ),
    value: (value - mean) / Math.sqrt(variance + epsilon),
    terms: [["x", value], ["mean", -mean]],
  };
}

function explain_norm(cell) {
  const { channel } = cell.index;
  const terms = [["gain", cell.weights[`${cell.module}.weight`].data[channel], cell.vector(cell.parents[0])[channel]]];
  const formula = row(at(symbol("γ"), "c"), "·", at(symbol("n"), "c"));
  const bias = cell.weights[`${cell.module}.bias`];
  if (!bias) return summed(formula, terms);
  return summed(row(formula, "+", at(symbol("β"), "c")), [...terms, ["bias", bias.data[channel]]]);
}

// --- projections.py ---

function explain_rotation(cell) {
  const [before, position] = cell.parents;
  const half = cell.config.head_size / 2;
  const { channel } = cell.index;
  const pair = channel % half;
  const vector = cell.headVector(before);
  const [cosine, sine] = cell.part(position, { head: 0, token: cell.token, pair });
  const isFirst = channel < half;
  const terms = [
    [`channel ${pair}`, vector[pair], isFirst ? cosine : sine],
    [`channel ${pair + half}`, vector[pair + half], isFirst ? -sine : cosine],
  ];
  const [first, second] = [pair, pair + half].map((c) => at(symbol("x"), String(c)));
  const [cos, sin] = ["cos", "sin"].map((name) => call(name, at(symbol("φ"), String(pair))));
  const formula = isFirst ? row(first, "·", cos, "−", second, "·", sin) : row(first, "·", sin, "+", second, "·", cos);
  return summed(formula, terms);
}

// --- attention.py ---

const sharedHead = ({ config, index }) => Math.floor(index.head / (config.heads / (config.kv_heads || config.heads)));

function explain_score(cell) {
  const [queries, keys] = cell.parents;
  const query = cell.part(queries, { head: cell.index.head, query: cell.index.query });
  const key = cell.part(keys, { head: sharedHead(cell), key: cell.index.key });
  const terms = products(query, key, query.map((_, c) => `channel ${c}`));
  const formula = total("c", row(at(symbol("q"), "c"), "·", at(symbol("k"), "c")));
  const scale = Math.sqrt(query.length);
  return {
    formula: fraction(formula, root(number(query.length))),
    numbers: fraction(written(terms), number(scale)),
    value: sumOfTerms(terms) / scale,
    terms,
  };
}

const rule = (formula, numbers, holds) => ({ formula: symbol(formula), numbers, value: +holds, terms: [] });

function explain_causal_mask({ index: { query, key } }) {
  const said = symbol(`key ${key} ${key <= query ? "≤" : ">"} query ${query}`);
  return rule("1 if the key stands no later than the query, else 0", said, key <= query);
}

function explain_window_mask({ index: { query, key }, config: { window } }) {
  const distance = query - key;
  const inside = distance >= 0 && distance < window;
  const said = symbol(`query − key = ${distance}, ${inside ? "in" : "not in"} 0 … ${window - 1}`);
  return rule("1 if the key stands no later than the query, and in its window, else 0", said, inside);
}

const explain_full_mask = () => rule("1: every token may be attended to", number(1), true);

function explain_weight(cell) {
  const [scores, mask] = cell.parents.map((parent) => cell.part(parent, { head: cell.index.head, query: cell.index.query }));
  const { key } = cell.index;
  const exponential = (name) => call("exp", row(at(symbol("s"), name), "−", symbol("s", "max")));
  const formula = fraction(exponential("j"), total("seen", exponential("m")));
  if (!mask[key]) return { formula, numbers: symbol("0: the query may not attend to this token"), value: 0, terms: [] };
  const seen = scores.map((score, i) => (mask[i] ? score : -Infinity));
  const most = Math.max(...seen);
  const exponentials = seen.map((score) => Math.exp(score - most));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  const labels = cell.labels(cell.name, "key", scores.length);
  return {
    formula,
    numbers: fraction(call("exp", row(number(seen[key]), "−", signed(most))), number(sum)),
    value: exponentials[key] / sum,
    terms: exponentials.map((value, i) => [labels[i], value]),
  };
}

function explain_head_output(cell) {
  const [weights, values] = cell.parents;
  const shares = cell.part(weights, { head: cell.index.head, query: cell.index.query });
  const column = cell.part(values, { head: sharedHead(cell), channel: cell.index.channel });
  const formula = total("j", row(at(symbol("w"), "j"), "·", at(symbol("v"), "j")));
  return summed(formula, products(shares, column, cell.labels(weights, "key", shares.length)));
}

function explain_joined_heads(cell) {
  const all = cell.part(cell.parents[0], { query: cell.token });
  const size = cell.config.head_size;
  return linear(cell, cell.index.channel, all, all.map((_, i) => `head ${Math.floor(i / size)}, channel ${i % size}`));
}

// --- feed_forward.py ---

function explain_activation(cell) {
  const before = cell.parents.map((parent) => cell.vector(parent)[cell.last]);
  const { activation, head, head_activation: other } = cell.config;
  const name = cell.owner === "head" && head !== "vocabulary" ? other : activation === "swiglu" ? "silu" : activation;
  let formula = call(name, symbol("x"));
  let numbers = call(name, number(before[0]));
  if (before.length === 2) [formula, numbers] = [row(formula, "·", symbol("u")), row(numbers, "·", signed(before[1]))];
  const term = [cell.parents.at(-1), ACTIVATIONS[name](before[0]), ...before.slice(1)];
  return { formula, numbers, value: valueOf(term), terms: [term] };
}

// --- head.py ---

function explain_first(cell) {
  const [value] = cell.part(cell.parents[0], { channel: cell.index.channel });
  return single(at(symbol("x"), "0", "c"), value, cell.inputs.tokens.source[0]);
}

function explain_mean(cell) {
  const column = cell.part(cell.parents[0], { channel: cell.index.channel });
  const terms = column.map((value, t) => [cell.inputs.tokens.source[t], value]);
  return {
    formula: fraction(total("t", at(symbol("x"), "t", "c")), symbol("T")),
    numbers: fraction(written(terms), number(terms.length)),
    value: dot(column, column.map(() => 1)) / column.length,
    terms,
  };
}

export const EXPLAIN = {
  ...{ explain_matrix, explain_sum, explain_embedding, explain_table, explain_sinusoidal_position, explain_rotary_position },
  ...{ explain_normalized, explain_norm, explain_rotation, explain_score, explain_causal_mask, explain_window_mask },
  ...{ explain_full_mask, explain_weight, explain_head_output, explain_joined_heads, explain_activation, explain_first, explain_mean },
};
