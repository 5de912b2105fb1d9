// Weights from a safetensors file, as float32: its numbers are float32, float16, bfloat16, or the int8 of compact runs.

import { at, tensor } from "./tensor.js";

const SCALE = ".int8_scale"; // ends the name of the scales of an int8 matrix, one for each row

const READERS = {
  F32: (bytes) => new Float32Array(bytes),
  F16: (bytes) => converted(new Uint16Array(bytes), Float32Array, (bits) => halves()[bits]),
  BF16: (bytes) => new Float32Array(converted(new Uint16Array(bytes), Uint32Array, (bits) => bits << 16).buffer),
  I8: (bytes) => new Float32Array(new Int8Array(bytes)),
};

// (several times as fast as the `from` of an array)
function converted(values, Type, convert) {
  const found = new Type(values.length);
  for (let i = 0; i < values.length; i += 1) found[i] = convert(values[i]);
  return found;
}

// The number that each of the 65,536 patterns of 16 bits stands for.
let table = null;

function halves() {
  table ??= Float32Array.from({ length: 65536 }, (_, bits) => half(bits));
  return table;
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14);
}

// The tensors of a file: name -> tensor.
export function readWeights(file) {
  const size = Number(new DataView(file).getBigUint64(0, true));
  const { __metadata__: _, ...tensors } = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, size)));
  const found = {};
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(tensors)) {
    if (!READERS[dtype]) throw new Error(`${name} has the type ${dtype}, which the browser cannot read`);
    found[name] = tensor(shape, READERS[dtype](file.slice(8 + size + from, 8 + size + to)));
  }
  return dequantised(found);
}

// Each row of an int8 matrix, multiplied by its scale.
function dequantised(found) {
  for (const name of Object.keys(found).filter((each) => each.endsWith(SCALE))) {
    const matrix = found[name.slice(0, -SCALE.length)];
    found[name].data.forEach((scale, row) => {
      const { data } = at(matrix, row);
      for (let i = 0; i < data.length; i += 1) data[i] *= scale;
    });
    delete found[name];
  }
  return found;
}
