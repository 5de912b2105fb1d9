// Changes: scale, replace or shuffle any named tensor or parameter while the model runs, as inspect/patch.py.
// Changes are {pattern: [change]}; a change is {kind, value, at}, or a function of the tensor.

import { axesOf, kindOf, matches } from "./names.js";
import { at, map, sizeOf, tensor } from "./tensor.js";

const FORM = 'changes look like {"NAME": [{"kind": "scale", "value": 0, "at": {"head": [2]}}]}';

export function readChanges(run, text) {
  let changes;
  try {
    changes = JSON.parse(text || "{}");
  } catch (error) {
    throw new Error(`changes '${text.slice(0, 80)}': expected JSON: ${error.message}`);
  }
  const rows = Object.values(changes).flat();
  if (Array.isArray(changes) || !rows.every((row) => ["scale", "replace", "shuffle"].includes(row?.kind) && "value" in row)) {
    throw new Error(FORM);
  }
  for (const pattern of Object.keys(changes)) {
    const known = [...Object.keys(run.tensors), ...Object.keys(run.parameters)];
    if (!known.some((name) => matches(name, pattern))) throw new Error(`the model has no '${pattern}'`);
  }
  return changes;
}

// All changes of a tensor of this name, in their order.
const changesOf = (name, changes) =>
  Object.entries(changes).flatMap(([pattern, some]) => (matches(name, pattern) ? some : []));

// A tensor of a pass after all changes.
export function changed(run, name, value, changes) {
  return changesOf(name, changes).reduce((before, change) => {
    if (typeof change === "function") return change(before);
    const after = applied(name, change, before, axesOf(run, name, before.shape.length));
    return kindOf(name) === "mask" ? map(after, (number) => +(number !== 0)) : after;
  }, value);
}

// The parameters after all changes; a tied one, which has several names, is changed under all of them.
export function changedWeights(run, weights, changes) {
  const after = { ...weights };
  for (const [pattern, some] of Object.entries(changes)) {
    const stored = new Set(Object.keys(run.parameters).filter((name) => matches(name, pattern)).map((name) => run.parameters[name]));
    for (const name of stored) {
      const axes = ["row", "column"].slice(0, after[name].shape.length);
      const value = some.reduce((before, change) => applied(name, change, before, axes), after[name]);
      for (const [other, own] of Object.entries(run.parameters)) if (own === name) after[other] = value;
    }
  }
  return after;
}

function applied(name, { kind, value, at: places = {} }, before, axes) {
  try {
    if (kind === "shuffle") return shuffled(before, axes, value);
    const numbers = fitted(value, before);
    const chosen = placesOf(before, axes, places);
    return map(before, (own, i) => (chosen(i) ? (kind === "scale" ? own * numbers(i) : numbers(i)) : own));
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

// Whether a change applies at a place of the data, given the indices of some axes.
function placesOf({ shape }, axes, places) {
  const conditions = Object.entries(places).map(([axis, indices]) => {
    const place = axes.indexOf(axis);
    if (place < 0) throw new Error(`at ${axis} = [${indices.join(", ")}]: this tensor has no such axis; it has ${axes.join(", ")}`);
    const size = shape[place];
    const wrong = indices.find((index) => !(index >= -size && index < size));
    if (wrong !== undefined) throw new Error(`at ${axis} = ${wrong}: this tensor has ${size}; count from 0`);
    const stride = sizeOf(shape.slice(place + 1));
    const inside = new Set(indices.map((index) => (index + size) % size));
    return (i) => inside.has(Math.floor(i / stride) % size);
  });
  return (i) => conditions.every((holds) => holds(i));
}

// A value of a change as a function of the place: one number, or numbers that broadcast.
function fitted(value, { shape }) {
  const sizes = [];
  for (let inner = value; Array.isArray(inner); inner = inner[0]) sizes.push(inner.length);
  const flat = [value].flat(Infinity).map(Number);
  const lacking = shape.length - sizes.length;
  if (lacking < 0 || sizes.some((size, axis) => size !== 1 && size !== shape[axis + lacking])) {
    const said = `a value of shape [${sizes.join(", ")}] does not fit a tensor of shape [${shape.join(", ")}]`;
    throw new Error(`${said}; give one number, or as many as its last axes have`);
  }
  return (i) => {
    let place = 0;
    sizes.forEach((size, axis) => {
      const index = Math.floor(i / sizeOf(shape.slice(axis + lacking + 1))) % shape[axis + lacking];
      place = place * size + (size === 1 ? 0 : index);
    });
    return flat[place];
  };
}

// The tensor with its tokens in another order.
function shuffled(before, axes, order) {
  const axis = axes.indexOf("token");
  if (axis < 0) throw new Error(`only a tensor with a token axis can be shuffled, not one with ${axes.join(", ")}`);
  const count = before.shape[axis];
  const places = Array.isArray(order) ? order : permutation(count, order);
  if ([...places].sort((a, b) => a - b).join() !== Array.from({ length: count }, (_, i) => i).join()) {
    throw new Error(`shuffle [${places.join(", ")}]: an order of ${count} tokens contains each of 0 to ${count - 1} once`);
  }
  const rows = { shape: [sizeOf(before.shape.slice(0, axis)), count, sizeOf(before.shape.slice(axis + 1))], data: before.data };
  const after = tensor(before.shape);
  for (let outer = 0; outer < rows.shape[0]; outer += 1) {
    places.forEach((from, to) => after.data.set(at(rows, outer, from).data, (outer * count + to) * rows.shape[2]));
  }
  return after;
}

// The order that PyTorch draws from a seed: torch.randperm with a Mersenne Twister.
function permutation(count, seed) {
  const next = twister(seed);
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = 0; i < count - 1; i += 1) {
    const other = i + (next() % (count - i));
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}

function twister(seed) {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i += 1) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let place = 624;
  return () => {
    if (place === 624) {
      for (let i = 0; i < 624; i += 1) {
        const both = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (both >>> 1) ^ (both & 1 ? 0x9908b0df : 0);
      }
      place = 0;
    }
    let bits = state[place++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  };
}
