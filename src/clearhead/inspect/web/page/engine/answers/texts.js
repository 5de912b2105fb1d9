// What a text is to a model: its tokens, the merges they come from, and the model's output.

import { outputOf, whole, word } from "../names.js";
import { continueText, encodeInputs, tokenizerOf } from "../inputs.js";
import { modelOf } from "../trace.js";
import { readChanges } from "../patch.js";
import { at, argmax, dot, logSumExp, softmax, topk } from "../tensor.js";
import { replay } from "../tokenizer.js";

const LONGEST_TEXT = 20_000; // characters
const MOST_WRITTEN = 64; // tokens by which a language model continues a text
const MOST_AT_ONCE = 20e9; // multiplications that the page starts without being asked to
const MOST_CANDIDATES = 100;
const OVERFLOW =
  "with this change the numbers overflow, and the model has no output any more; choose a smaller factor, or undo it";

export async function run(engine) {
  const runs = await Promise.all(engine.runs.map((_, number) => engine.run(number)));
  return { runs: runs.map(({ about }) => about) };
}

export async function metrics(engine, { run: number }) {
  return (await engine.run(number)).metrics;
}

export async function trace(engine, { run: number, text, target = "", snapshot = "", changes = "", write = "0" }) {
  checkText({ text, target, changes });
  const id = await begin(engine, { number, text, target, snapshot, changes, write: whole("write", write, MOST_WRITTEN + 1) });
  const part = await engine.passes.part(id, outputOf(await engine.run(number)));
  const { run: found, inputs, tensors } = part;
  if (!tensors.get(outputOf(found)).data.every(Number.isFinite)) throw new Error(OVERFLOW);
  const names = Object.fromEntries(Object.entries(found.tensors).map(([name, { kind }]) => [name, kind]));
  const { before } = engine.passes.get(id);
  return {
    ...{ id, names, text: inputs.text, target: inputs.target, before, written: inputs.written },
    ...{ quick: importanceCost(found, inputs) <= MOST_AT_ONCE, unchanged: changes ? before : id },
    tokens: Object.fromEntries(Object.entries(inputs.ids).map(([side, ids]) => [side, marked(tokenizerOf(found, side), ids)])),
    ...outcome(part),
  };
}

function checkText(texts) {
  for (const [name, value] of Object.entries(texts)) {
    if (value.length > LONGEST_TEXT) {
      throw new Error(`${name} has ${value.length.toLocaleString("en")} characters; at most 20,000 fit`);
    }
  }
}

// The id of a pass. A model that is changed, or not yet trained, reads the same tokens as the finished one without changes.
async function begin(engine, asked) {
  const { number, text, target, snapshot, changes, write } = asked;
  const key = JSON.stringify([String(number), text, target, snapshot, changes, write]);
  const before = snapshot || changes ? await begin(engine, { ...asked, snapshot: changes ? snapshot : "", changes: "" }) : "";
  if (engine.ids.has(key) && engine.passes.byId.has(engine.ids.get(key))) return engine.ids.get(key);
  const found = await engine.run(number, snapshot);
  let inputs = before && engine.passes.get(before).inputs;
  if (!before) {
    const m = modelOf(found);
    inputs = encodeInputs(found, m, text, target);
    if (write) inputs = continueText(found, m, inputs, write);
  }
  const id = `trace-${engine.passes.count}`;
  engine.ids.set(key, id);
  engine.passes.add(id, { run: () => engine.run(number, snapshot), inputs, changes: readChanges(found, changes), before });
  return id;
}

const marked = (tokenizer, ids) => ids.map((id) => ({ piece: tokenizer.piece(id), id, special: tokenizer.decode([id]) === "" }));

// The probabilities of classes, or the likeliest token at each position; nothing for a vector.
function outcome({ run: found, tensors }) {
  const logits = tensors.get("head.logits");
  if (!logits) return {};
  if (logits.shape.length === 1) {
    const labels = found.about.labels.length ? found.about.labels : [...logits.data.keys()].map(String);
    return { classes: [...softmax(logits.data)].map((probability, i) => [labels[i], probability]) };
  }
  const rows = Array.from({ length: logits.shape[0] }, (_, t) => at(logits, t).data);
  const guesses = rows.map((row) => {
    const best = argmax(row);
    return { piece: word(found.tokenizers.target, best), probability: Math.exp(row[best] - logSumExp(row)) };
  });
  const entropy = rows.map((row) => logSumExp(row) - dot(softmax(row), row));
  return { guesses, uncertain: rows.length > 1 ? 1 + argmax(entropy.slice(1)) : 0 };
}

// About how many multiplications it takes to measure the importance of every head and sublayer.
function importanceCost({ about, config }, { ids }) {
  const tokens = Object.values(ids).reduce((sum, each) => sum + each.length, 0);
  const sublayers = 3 * about.stacks.reduce((sum, { layers }) => sum + layers, 0);
  return about.parameters * tokens * sublayers * (config.heads + 2);
}

export async function merges(engine, { run: number, side, text }) {
  checkText({ text });
  const found = await engine.run(number);
  const tokenizer = tokenizerOf(found, side);
  const ids = tokenizer.encode(text);
  return { pieces: ids.map((id) => [tokenizer.piece(id), id]), words: replay(tokenizer, text) };
}

// The likeliest tokens at a position; their logits are a row of the tensor `head.logits`.
export async function next(engine, { trace: id, token }) {
  const { run: found, tensors } = await engine.passes.part(id, "head.logits");
  const logits = tensors.get("head.logits");
  const row = at(logits, whole("token", token, logits.shape[0])).data;
  const ids = topk(row, Math.min(MOST_CANDIDATES, row.length));
  return { ids, words: ids.map((number) => word(found.tokenizers.target, number)) };
}
