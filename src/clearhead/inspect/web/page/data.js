// All data of the page: JSON and tensors from the server, or from the page itself: if it was saved with --html, or computed
// by the page if it was published with --site.

import { compute, live } from "./live.js";

export const saved = await readSaved(document.getElementById("saved"));

async function readSaved(element) {
  if (!element) return null;
  const packed = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const MOST_CACHED = 96e6; // bytes of tensors that the page caches
const LONGEST_ADDRESS = 65000; // characters; servers refuse longer ones
const answers = new Map(); // address -> promise of JSON
const tensors = new Map(); // address -> promise of a tensor, the least recently used first
let cachedBytes = 0;

function address(path, query) {
  return `api/${path}?${new URLSearchParams(query)}`;
}

// The key of a request in a saved file, as share.py writes it.
function plain(path, query) {
  return `${path}?${Object.entries(query)
    .map(([key, value]) => `${key}=${value}`)
    .join("&")}`;
}

// The error of a response; `clearhead serve` sends some in the form of OpenAI's API.
async function refused(response) {
  const { error } = await response.json().catch(() => ({ error: response.statusText }));
  return new Error(error.message ?? error);
}

export function ask(path, query = {}) {
  if (saved) {
    const found = saved.answers[plain(path, query)];
    return found === undefined ? Promise.reject(new Error(saved.absent)) : Promise.resolve(found);
  }
  const from = address(path, query);
  if (!live && from.length > LONGEST_ADDRESS) return Promise.reject(new Error("The text is too long to be sent; shorten it."));
  if (!answers.has(from)) {
    if (answers.size > 400) answers.delete(answers.keys().next().value);
    const promise = live ? compute(path, query) : fetchJson(from);
    promise.catch(() => answers.delete(from));
    answers.set(from, promise);
  }
  return answers.get(from);
}

async function fetchJson(from) {
  const response = await fetch(from);
  if (!response.ok) throw await refused(response);
  return response.json();
}

// A tensor of a trace: {shape, data}. `index` indexes its first axes: "2" is head 2; `small` requests a thumbnail, in which
// each cell is the maximum of a patch.
export async function tensor(trace, name, index = "", small = false) {
  if (saved) return cut(unpacked(trace, name), index);
  const { shapes, data } = await kept("tensor", { trace, name, index, small: small ? 1 : "" });
  return { shape: shapes[0], data };
}

function kept(path, query) {
  const from = address(path, query);
  const found = tensors.get(from) ?? readTensors(from, path, query);
  tensors.delete(from);
  tensors.set(from, found); // the most recently used is the last
  return found;
}

// Several tensors in one request, each with an index of its own.
export async function tensorsOf(trace, names, indices = [], small = false) {
  if (saved) return Promise.all(names.map((name, i) => tensor(trace, name, indices[i])));
  const query = { trace, names: names.join(), indices: indices.join(";"), small: small ? 1 : "" };
  const { shapes, data } = await kept("tensors", query);
  let start = 0;
  return shapes.map((shape) => {
    const size = shape.reduce((a, b) => a * b, 1);
    start += size;
    return { shape, data: data.subarray(start - size, start) };
  });
}

async function readTensors(from, path, query) {
  try {
    const found = await (live ? compute(path, query) : fetchTensors(from));
    cachedBytes += found.data.byteLength;
    evict();
    return found;
  } catch (error) {
    tensors.delete(from);
    throw error;
  }
}

async function fetchTensors(from) {
  const response = await fetch(from);
  if (!response.ok) throw await refused(response);
  const numbers = (text) => text.split(",").filter(Boolean).map(Number);
  const shapes = response.headers.get("X-Shape").split(";").map(numbers);
  return { shapes, data: new Float32Array(await response.arrayBuffer()) };
}

// Drop the least recently used tensors above the limit.
async function evict() {
  for (const [from, promise] of tensors) {
    if (cachedBytes < MOST_CACHED || tensors.size < 2) return;
    tensors.delete(from);
    cachedBytes -= (await promise).data.byteLength;
  }
}

function unpacked(trace, name) {
  const packed = saved.tensors[`${trace} ${name}`];
  if (!packed) throw new Error(saved.absent);
  if (!packed.values) {
    const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
    packed.values = new Float32Array(bytes.buffer);
  }
  return { shape: packed.shape, data: packed.values };
}

function cut({ shape, data }, index) {
  const picked = index ? index.split(",").map(Number) : [];
  const left = shape.slice(picked.length);
  const size = left.reduce((a, b) => a * b, 1);
  const start = picked.reduce((at, place, axis) => at * shape[axis] + place, 0);
  return { shape: left, data: data.subarray(start * size, (start + 1) * size) };
}

// The traces of this page; when it is closed, the server frees them.
const open = new Set();

export async function openTrace(query) {
  const trace = await ask("trace", query);
  open.add(trace.id);
  return trace;
}

addEventListener("pagehide", () => {
  if (!saved && !live && open.size) navigator.sendBeacon("api/close", JSON.stringify([...open]));
});
