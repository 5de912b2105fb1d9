// Computes in the background: receives {number, path, query}, sends {number, found} or {number, error}.

import { Engine } from "./engine.js";

const engine = new Engine(readFile, Number(self.name)); // the name of the worker is the number of runs

async function readFile(path) {
  const response = await fetch(new URL(`../${path}`, import.meta.url));
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

addEventListener("message", async ({ data: { number, path, query } }) => {
  try {
    const found = await engine.answer(path, query);
    const tensors = Array.isArray(found) ? found : found.data instanceof Float32Array ? [found] : null;
    const message = { number, found: tensors ? packed(tensors) : found };
    postMessage(message, tensors ? [message.found.data.buffer] : []);
  } catch (error) {
    postMessage({ number, error: error.message });
  }
});

// Several tensors one after the other, in a copy that can be handed over.
function packed(tensors) {
  const data = new Float32Array(tensors.reduce((sum, tensor) => sum + tensor.data.length, 0));
  let start = 0;
  for (const tensor of tensors) {
    data.set(tensor.data, start);
    start += tensor.data.length;
  }
  return { shapes: tensors.map(({ shape }) => shape), data };
}
