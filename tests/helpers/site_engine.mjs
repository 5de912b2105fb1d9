// Answers requests by the engine of a published page, without a browser: node site_engine.mjs SITE < requests > answers.
//
// Requests are a JSON list of [path, query]. The answer to a request "trace" gets its id; later requests name the trace by the
// number of that request. Answers are a JSON list of {found}, {shapes, data} with the bytes of float32 in base64, or {error}.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const site = process.argv[2];
const { Engine } = await import(pathToFileURL(`${site}/engine/engine.js`));
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const requests = JSON.parse(Buffer.concat(chunks).toString());
const runs = Number((await readFile(`${site}/index.html`, "utf8")).match(/<meta name="runs" content="(\d+)">/)[1]);

async function read(path) {
  const { buffer, byteOffset, byteLength } = await readFile(`${site}/${path}`);
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

function written(found) {
  const tensors = Array.isArray(found) ? found : found.data instanceof Float32Array ? [found] : null;
  if (!tensors) return { found };
  const bytes = tensors.map(({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  return { shapes: tensors.map(({ shape }) => shape), data: Buffer.concat(bytes).toString("base64") };
}

const engine = new Engine(read, runs);
const answers = [];
for (const [path, query] of requests) {
  if ("trace" in query) query.trace = answers[Number(query.trace)].found?.id ?? "";
  try {
    answers.push(written(await engine.answer(path, query)));
  } catch (error) {
    answers.push({ error: error.message, ...(process.env.VERBOSE && { stack: error.stack }) });
  }
}
process.stdout.write(JSON.stringify(answers));
