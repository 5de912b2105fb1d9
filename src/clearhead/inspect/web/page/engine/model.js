// The twin of clearhead's model/ in JavaScript: one function for each of its modules, with the same names.
//
// `m` has the settings of the model (`config`), its parameters by name (`weights`), and `tap(name, tensor)`, which sees the
// output of each module and returns it, or what replaces it. `known(block)`, where there is one, gives the output of a block
// that need not be computed again. There is no batch. Shapes: T tokens, S keys, D model, H heads, G key/value heads, K head size.

import { add, at, eachRow, joined, map, mergeHeads, mixed, product, split, tensor } from "./tensor.js";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const silu = (x) => x * sigmoid(x);

export const ACTIVATIONS = {
  relu: (x) => (x > 0 ? x : 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  "gelu-tanh": (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu,
  swiglu: silu,
  tanh: Math.tanh,
};

// The error function, by its series: 2/√π exp(-x²) (x + 2x³/3 + 4x⁵/15 + ...).
function erf(x) {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-12; n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

// --- norm.py ---

export function norm(m, name, x) {
  const width = x.shape.at(-1);
  const centred = m.config.norm === "layer";
  const own = tensor(x.shape);
  eachRow(x, (row, start) => {
    const mean = centred ? row.reduce((sum, value) => sum + value, 0) / width : 0;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    const deviation = Math.sqrt(variance + m.config.norm_epsilon);
    for (let c = 0; c < width; c += 1) own.data[start + c] = (row[c] - mean) / deviation;
  });
  const normalized = m.tap(`${name}.normalized`, own);
  const gain = m.weights[`${name}.weight`].data;
  const scaled = map(normalized, (value, i) => value * gain[i % width]);
  const bias = m.weights[`${name}.bias`];
  return m.tap(name, bias ? add(scaled, bias) : scaled);
}

export function linear(m, name, x) {
  return m.tap(name, product(x, m.weights[`${name}.weight`], m.weights[`${name}.bias`]));
}

// --- attention.py ---

// Rotates channel i and channel i + K/2 of x (H, T, K) by the angle of the token; rotation (2, 1, T, K/2).
function rotate(x, rotation) {
  const [heads, tokens, size] = x.shape;
  const half = size / 2;
  const [cos, sin] = [0, 1].map((part) => at(rotation, part).data);
  const y = tensor(x.shape);
  for (let place = 0; place < heads * tokens; place += 1) {
    const angle = (place % tokens) * half;
    for (let i = 0; i < half; i += 1) {
      const [c, s] = [cos[angle + i], sin[angle + i]];
      const first = x.data[place * size + i];
      const second = x.data[place * size + half + i];
      y.data[place * size + i] = first * c - second * s;
      y.data[place * size + half + i] = first * s + second * c;
    }
  }
  return y;
}

// `context` is the side of keys and values; null: x itself. `sees(query, key)` says which pairs the mask allows.
export function attention(m, name, x, { context = null, sees, rotation = null, cache = null }) {
  let queries = split(linear(m, `${name}.query`, x), m.config.head_size);
  if (m.config.query_key_norm) queries = norm(m, `${name}.query_norm`, queries);
  queries = m.tap(`${name}.queries`, rotation ? rotate(queries, rotation) : queries);
  if (!(context && cache?.keys)) keysAndValues(m, name, context ?? x, rotation, (cache ??= {}));
  const { keys, values } = cache;
  const weights = weigh(m, name, queries, keys, sees);
  const [heads, tokens, size] = queries.shape;
  const outputs = tensor([heads, tokens, size]);
  for (let head = 0; head < heads; head += 1) {
    outputs.data.set(mixed(at(weights, head), at(values, shared(head, heads, values))).data, head * tokens * size);
  }
  return linear(m, `${name}.out`, mergeHeads(m.tap(`${name}.head_outputs`, outputs)));
}

// The key/value head that a query head uses.
const shared = (head, heads, keys) => Math.floor((head * keys.shape[0]) / heads);

// The keys and values of the context, (G, S, K) each, after those in the cache.
function keysAndValues(m, name, context, rotation, cache) {
  let keys = split(linear(m, `${name}.key`, context), m.config.head_size);
  if (m.config.query_key_norm) keys = norm(m, `${name}.key_norm`, keys);
  const values = m.tap(`${name}.values`, split(linear(m, `${name}.value`, context), m.config.head_size));
  keys = m.tap(`${name}.keys`, rotation ? rotate(keys, rotation) : keys);
  cache.values = cache.values ? joined(cache.values, values) : values;
  cache.keys = cache.keys ? joined(cache.keys, keys) : keys;
}

// The attention weights, (H, T, S).
function weigh(m, name, queries, keys, sees) {
  const [heads, tokens, size] = queries.shape;
  const count = keys.shape[1];
  const shape = [heads, tokens, count];
  const mask = m.tap(`${name}.mask`, maskOf(shape, sees));
  const own = tensor(shape);
  for (let head = 0; head < heads; head += 1) {
    own.data.set(product(at(queries, head), at(keys, shared(head, heads, keys))).data, head * tokens * count);
  }
  const scores = m.tap(`${name}.scores`, map(own, (value) => value / Math.sqrt(size)));
  return m.tap(`${name}.weights`, maskedSoftmax(scores, mask));
}

// 1 where a query may attend to a key, the same in each head.
function maskOf([heads, tokens, keys], sees) {
  const mask = tensor([heads, tokens, keys]);
  const row = new Float32Array(keys);
  for (let query = 0; query < tokens; query += 1) {
    for (let key = 0; key < keys; key += 1) row[key] = +sees(query, key);
    for (let head = 0; head < heads; head += 1) mask.data.set(row, (head * tokens + query) * keys);
  }
  return mask;
}

// A query that may attend to no key gets weights of 0.
function maskedSoftmax(scores, mask) {
  const weights = tensor(scores.shape);
  eachRow(scores, (row, start) => {
    const seen = (key) => mask.data[start + key];
    let most = -Infinity;
    let sum = 0;
    for (let key = 0; key < row.length; key += 1) if (seen(key) && row[key] > most) most = row[key];
    for (let key = 0; key < row.length; key += 1) if (seen(key)) sum += Math.exp(row[key] - most);
    for (let key = 0; key < row.length; key += 1) if (seen(key)) weights.data[start + key] = Math.exp(row[key] - most) / sum;
  });
  return weights;
}

// --- block.py ---

function feedForward(m, name, x) {
  const activation = ACTIVATIONS[m.config.activation];
  const up = linear(m, `${name}.up`, x);
  const gate = m.config.activation === "swiglu" && linear(m, `${name}.gate`, x);
  const inner = gate ? map(gate, (value, i) => activation(value) * up.data[i]) : map(up, activation);
  return linear(m, `${name}.down`, m.tap(`${name}.inner`, inner));
}

function addNorm(m, name, x, sublayer) {
  if (m.config.norm_order === "pre") {
    return m.tap(name, m.tap(`${name}.added`, add(x, sublayer(norm(m, `${name}.norm`, x)))));
  }
  return m.tap(name, norm(m, `${name}.norm`, m.tap(`${name}.added`, add(x, sublayer(x)))));
}

// What is around the tokens of a stack: {sees, memory, caches}; memory is the encoder's output, for cross-attention.
function block(m, name, x, { sees, memory }, rotation, [cache, crossCache]) {
  const inside = (part, sublayer) =>
    addNorm(m, `${name}.${part}_add_norm`, x, (h) => m.tap(`${name}.${part}`, sublayer(`${name}.${part}`, h)));
  x = inside("attention", (part, h) => attention(m, part, h, { sees, rotation, cache }));
  if (memory) {
    x = inside("cross_attention", (part, h) => attention(m, part, h, { context: memory, sees: () => true, cache: crossCache }));
  }
  return inside("feed_forward", (part, h) => feedForward(m, part, h));
}

// --- stack.py ---

function embedding(m, name, ids) {
  const table = m.weights[`${name}.weight`];
  const scale = m.config.scale_embedding ? Math.sqrt(m.config.d_model) : 1;
  const x = tensor([ids.length, m.config.d_model]);
  ids.forEach((id, t) => x.data.set(at(table, id).data.map((value) => value * scale), t * m.config.d_model));
  return m.tap(name, x);
}

const angle = (position, pair, size, base) => position * base ** ((-2 * pair) / size);

// 1 / factor for pairs of channels with at most one turn in `rotary_length` tokens, 1 for those with four or more.
export function slowed({ rotary_factor: factor, rotary_length: length, rotary_base: base, head_size: size }, pair) {
  const turns = angle(length, pair, size, base) / (2 * Math.PI);
  const kept = Math.min(1, Math.max(0, (turns - 1) / 3));
  return factor === 1 ? 1 : kept + (1 - kept) / factor;
}

// The vectors of `count` positions from `start` on, (T, D); rotary: cosines and sines, (2, 1, T, K/2); or null.
export function positions(m, name, start, count) {
  const { position, d_model: width, head_size: size, rotary_base: base } = m.config;
  const rows = (columns, value) =>
    Float32Array.from({ length: count * columns }, (_, i) => value(start + Math.floor(i / columns), i % columns));
  if (position === "learned") {
    const table = m.weights[`${name}.table.weight`].data;
    return tensor([count, width], table.slice(start * width, (start + count) * width));
  }
  if (position === "sinusoidal") {
    return tensor([count, width], rows(width, (t, c) => [Math.sin, Math.cos][c % 2](angle(t, c >> 1, width, 10_000))));
  }
  if (position === "none") return null;
  const turned = rows(size / 2, (t, pair) => angle(t, pair, size, base) * slowed(m.config, pair));
  return tensor([2, 1, count, size / 2], new Float32Array([...turned.map(Math.cos), ...turned.map(Math.sin)]));
}

// Token ids to hidden states: (T) -> (T, D). `start`: the position of the first token.
function stack(m, name, ids, around, start = 0, caches = []) {
  checkLength(m.config, start + ids.length);
  let x = embedding(m, `${name}.embedding`, ids);
  const own = positions(m, `${name}.position`, start, ids.length);
  const position = own && m.tap(`${name}.position`, own);
  const rotation = m.config.position === "rotary" ? position : null;
  if (position && !rotation) x = add(x, position);
  if (m.config.segments) {
    const segment = at(m.weights[`${name}.segment.weight`], 0).data;
    x = add(x, m.tap(`${name}.segment`, map(x, (_, i) => segment[i % segment.length])));
  }
  x = m.tap(`${name}.sum`, x);
  if (m.config.embedding_norm) x = norm(m, `${name}.embedding_norm`, x);
  for (let i = 0; i < layersOf(m.config, name); i += 1) {
    x = m.known?.(`${name}.blocks.${i}`) ?? block(m, `${name}.blocks.${i}`, x, around, rotation, caches[i] ?? []);
  }
  return m.config.norm_order === "pre" ? norm(m, `${name}.norm`, x) : x;
}

export const layersOf = ({ layers, encoder_layers: own, family }, stackName) =>
  (stackName === "encoder" && family === "encoder-decoder" && own) || layers;

function checkLength({ position, max_length: limit }, count) {
  if (position === "learned" && count > limit) {
    throw new Error(
      `a sequence of ${count} tokens is longer than model.max_length = ${limit} learned positions; ` +
        "shorten it, or train with a larger max_length or another model.position",
    );
  }
}

// --- families.py ---

// From hidden states to logits; where the model's output is the vector itself, that vector.
export function head(m, x) {
  const { head: kind, head_dense: dense, activation, head_activation: other } = m.config;
  if (dense) {
    const before = linear(m, "head.dense", x);
    x = m.tap("head.activated", map(before, ACTIVATIONS[kind === "vocabulary" ? activation : other]));
    if (kind === "vocabulary") x = norm(m, "head.norm", x);
  }
  if (kind === "embedding") return x;
  return m.tap("head.logits", product(x, m.weights["head.project.weight"], m.weights["head.project.bias"]));
}

// One vector for a text: that of its first token, or the mean. (T, D) -> (D)
export function pool({ config }, x) {
  if (config.pool === "first") return at(x, 0);
  const [tokens, width] = x.shape;
  const mean = new Float64Array(width);
  x.data.forEach((value, i) => (mean[i % width] += value / tokens));
  return tensor([width], Float32Array.from(mean));
}

const everything = () => true;
const encode = (m, source) => stack(m, "encoder", source, { sees: everything });

// A token sees itself and those before it, in its window if there is one; `start` tokens were read before.
const past = ({ window }, start) => (query, key) => key <= start + query && !(window && start + query - key >= window);

// The whole text at once: logits (T, V) or (C), or a vector (D).
export function forward(m, { source, target }) {
  if (m.config.family === "encoder-only") {
    const x = encode(m, source);
    return head(m, m.config.head === "vocabulary" ? x : m.tap("pooled", pool(m, x)));
  }
  const memory = source && encode(m, source);
  return head(m, stack(m, "decoder", target, { sees: past(m.config, 0), memory }));
}

// What a model keeps between two decoding steps. Tensors in it are never written to, so `fork` copies references only.
export const fork = (state) => ({ ...state, caches: state.caches.map((both) => both.map((cache) => ({ ...cache }))) });

// Reads the prompt: the logits (V) of the next token, and the state for `step`.
export function start(m, { source, target }) {
  const caches = Array.from({ length: m.config.layers }, () => [{}, {}]);
  const state = { length: 0, memory: source && encode(m, source), caches };
  return [step(m, target, state), state];
}

// Reads more tokens, usually one: the logits (V) of the next.
export function step(m, ids, state) {
  const around = { sees: past(m.config, state.length), memory: state.memory };
  const x = stack(m, "decoder", ids, around, state.length, state.caches);
  state.length += ids.length;
  return head(m, at(x, ids.length - 1));
}
