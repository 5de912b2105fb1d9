// Tensors of a pass: {shape, data}, float32, rows last. There is no batch axis: the browser reads one text at a time.
// Sums are added up in float64, since that is what JavaScript computes in.

export const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

export const tensor = (shape, data = new Float32Array(sizeOf(shape))) => ({ shape, data });

// A part without a copy: what is at these indices of the first axes.
export function at({ shape, data }, ...indices) {
  const left = shape.slice(indices.length);
  const size = sizeOf(left);
  const start = indices.reduce((place, index, axis) => place * shape[axis] + index, 0) * size;
  return { shape: left, data: data.subarray(start, start + size) };
}

// x times a transposed matrix, plus a bias: (..., K) and (N, K) -> (..., N).
export function product(x, matrix, bias) {
  const [outputs, inputs] = matrix.shape;
  const rows = x.data.length / inputs;
  const y = tensor([...x.shape.slice(0, -1), outputs]);
  for (let n = 0; n < outputs; n += 4) {
    const places = [0, 1, 2, 3].map((i) => Math.min(n + i, outputs - 1) * inputs); // the last block may overlap
    for (let row = 0; row + 2 <= rows; row += 2) twoRows(x.data, matrix.data, y.data, row, places, inputs, outputs);
    if (rows % 2) oneRow(x.data, matrix.data, y.data, rows - 1, places, inputs, outputs);
  }
  if (bias) for (let i = 0; i < y.data.length; i += 1) y.data[i] += bias.data[i % outputs];
  return y;
}

// Two rows of x with four rows of the matrix: their eight sums fit into the registers of a processor, and each number that
// is read takes part in several products.
function twoRows(x, w, y, row, [w0, w1, w2, w3], inputs, outputs) {
  const x0 = row * inputs, x1 = x0 + inputs;
  let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  for (let i = 0; i < inputs; i += 1) {
    const a = x[x0 + i], b = x[x1 + i];
    const p = w[w0 + i], q = w[w1 + i], r = w[w2 + i], s = w[w3 + i];
    a0 += a * p; a1 += a * q; a2 += a * r; a3 += a * s;
    b0 += b * p; b1 += b * q; b2 += b * r; b3 += b * s;
  }
  const y0 = row * outputs, y1 = y0 + outputs;
  const n0 = w0 / inputs, n1 = w1 / inputs, n2 = w2 / inputs, n3 = w3 / inputs;
  y[y0 + n0] = a0; y[y0 + n1] = a1; y[y0 + n2] = a2; y[y0 + n3] = a3;
  y[y1 + n0] = b0; y[y1 + n1] = b1; y[y1 + n2] = b2; y[y1 + n3] = b3;
}

function oneRow(x, w, y, row, [w0, w1, w2, w3], inputs, outputs) {
  const begin = row * inputs;
  let a0 = 0, a1 = 0, a2 = 0, a3 = 0;
  for (let i = 0; i < inputs; i += 1) {
    const a = x[begin + i];
    a0 += a * w[w0 + i]; a1 += a * w[w1 + i]; a2 += a * w[w2 + i]; a3 += a * w[w3 + i];
  }
  const to = row * outputs;
  y[to + w0 / inputs] = a0; y[to + w1 / inputs] = a1; y[to + w2 / inputs] = a2; y[to + w3 / inputs] = a3;
}

// The sum of rows, each with a weight: (T, S) x (S, K) -> (T, K).
export function mixed(weights, values) {
  const [rows, keys] = weights.shape;
  const width = values.shape[1];
  const y = tensor([rows, width]);
  const sums = new Float64Array(width);
  for (let row = 0; row < rows; row += 1) {
    sums.fill(0);
    for (let key = 0; key < keys; key += 1) {
      const weight = weights.data[row * keys + key];
      if (weight) for (let c = 0; c < width; c += 1) sums[c] += weight * values.data[key * width + c];
    }
    y.data.set(sums, row * width);
  }
  return y;
}

export const map = (x, change) => tensor(x.shape, x.data.map(change));

export const add = (x, y) => map(x, (value, i) => value + y.data[i % y.data.length]);

// Calls `read` with each row along the last axis, and where it begins.
export function eachRow({ shape, data }, read) {
  const width = shape.at(-1);
  for (let start = 0; start < data.length; start += width) read(data.subarray(start, start + width), start);
}

export function rowsOf(x) {
  const rows = [];
  eachRow(x, (row) => rows.push(row));
  return rows;
}

// (T, n * K) -> (n, T, K): the channels of each head.
export function split(x, size) {
  const [tokens, width] = x.shape;
  const y = tensor([width / size, tokens, size]);
  for (let head = 0; head < width / size; head += 1) {
    for (let t = 0; t < tokens; t += 1) {
      const from = t * width + head * size;
      y.data.set(x.data.subarray(from, from + size), (head * tokens + t) * size);
    }
  }
  return y;
}

// (n, T, K) -> (T, n * K): the channels of all heads side by side.
export function mergeHeads(x) {
  const [heads, tokens, size] = x.shape;
  const y = tensor([tokens, heads * size]);
  for (let head = 0; head < heads; head += 1) {
    for (let t = 0; t < tokens; t += 1) y.data.set(at(x, head, t).data, (t * heads + head) * size);
  }
  return y;
}

// Joins along the second axis: (n, S, K) and (n, T, K) -> (n, S + T, K).
export function joined(x, y) {
  const [count, before, size] = x.shape;
  const length = before + y.shape[1];
  const both = tensor([count, length, size]);
  for (let n = 0; n < count; n += 1) {
    both.data.set(at(x, n).data, n * length * size);
    both.data.set(at(y, n).data, (n * length + before) * size);
  }
  return both;
}

export function logSumExp(row) {
  const most = largest(row);
  let sum = 0;
  for (let i = 0; i < row.length; i += 1) sum += Math.exp(row[i] - most);
  return most + Math.log(sum);
}

export function logSoftmax(row) {
  const total = logSumExp(row);
  const found = new Float64Array(row);
  for (let i = 0; i < found.length; i += 1) found[i] -= total;
  return found;
}

export const softmax = (row) => logSoftmax(row).map(Math.exp);

// (not Math.max(...row), which a long row overflows)
export const largest = (row) => row[argmax(row)];

export function argmax(row) {
  let best = 0;
  for (let i = 1; i < row.length; i += 1) if (row[i] > row[best]) best = i;
  return best;
}

// The indices of the `count` largest numbers, the largest first.
export function topk(row, count) {
  const best = [];
  for (let i = 0; i < row.length; i += 1) {
    if (best.length === count && !(row[i] > row[best.at(-1)])) continue;
    let place = best.length;
    while (place && row[best[place - 1]] < row[i]) place -= 1;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

export const dot = (x, y) => {
  let sum = 0;
  for (let i = 0; i < x.length; i += 1) sum += x[i] * y[i];
  return sum;
};

export const length = (x) => Math.sqrt(dot(x, x));

export const cosine = (x, y) => dot(x, y) / (length(x) * length(y));
