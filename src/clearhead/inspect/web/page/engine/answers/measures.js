// What depends on a part of the model: the effect of changes, importance, roles, milestones, as inspect/answer.py and roles.py.

import { kindOf, labelsOf, outputOf, ownerOf, word } from "../names.js";
import { capture, fits } from "../trace.js";
import { argmax, at, cosine, logSoftmax, rowsOf, tensor } from "../tensor.js";
import { writtenBy } from "./searches.js";

const MIN_ROLE_SHARE = 0.5; // a head has a role if it gives more than this share of its attention to one kind of token
const MOST_PARAMETERS = 30_000_000; // of a model whose snapshots are all looked at

// Lets other requests be answered between two passes.
const pause = () => new Promise((resume) => setTimeout(resume));

// The answer to a text: {rows, choices, words}. A translation with the token after it; the next token of a language model;
// the likeliest class; the tokens in place of masks, or the tokens of the text themselves; nothing for a vector.
function answerOf({ run, inputs, tensors }) {
  const { family, head } = run.config;
  if (head === "embedding") return { rows: [], choices: [], words: [] };
  const logits = tensors.get("head.logits");
  if (head === "classes") {
    const best = argmax(logits.data);
    return { rows: [0], choices: [best], words: [labelsOf(run, inputs, "head.logits", "class", logits.shape[0])[best]] };
  }
  const likeliest = (row) => argmax(at(logits, row).data);
  let [rows, choices] = [[], []];
  if (family === "encoder-only") {
    const ids = inputs.ids.source;
    rows = [...ids.keys()].filter((row) => ids[row] === run.tokenizers.target.special.mask);
    choices = rows.map(likeliest);
    if (!rows.length) [rows, choices] = [[...ids.keys()].slice(1, -1), ids.slice(1, -1)];
  } else {
    const ids = inputs.ids.target;
    const first = family === "encoder-decoder" ? 0 : ids.length - 1;
    rows = [...ids.keys()].slice(first);
    choices = [...ids.slice(first + 1), likeliest(ids.length - 1)];
  }
  return { rows, choices, words: choices.map((id) => word(run.tokenizers.target, id)) };
}

// The log-probability of each part of an answer.
const logProbabilities = ({ run }, logits, { rows, choices }) =>
  rows.map((row, i) => logSoftmax((run.config.head === "classes" ? logits : at(logits, row)).data)[choices[i]]);

// What a change does to the answer: its probabilities before and after, and what the model writes instead.
export async function effect(engine, { trace }) {
  const after = engine.passes.get(trace);
  const before = engine.passes.get(after.before || trace);
  const output = outputOf(await after.run());
  const first = await engine.passes.part(after.before || trace, output);
  const second = await engine.passes.part(trace, output);
  if (output === "pooled") return { cosine: cosine(first.tensors.get("pooled").data, second.tensors.get("pooled").data) };
  const answer = answerOf(first);
  const [old, now] = [first, second].map((part) => logProbabilities(part, part.tensors.get(output), answer).map(Math.exp));
  const parts = answer.rows.map((row, i) => ({ row, word: answer.words[i], before: old[i], after: now[i] }));
  if (second.run.config.family === "encoder-only") return { parts };
  const [wrote] = after.before ? writtenBy(first.run, before) : [""];
  const [writes, ended] = writtenBy(second.run, after);
  return { parts, wrote, writes, ended };
}

// The output of the same tokens with further changes.
function outputWith(part, changes) {
  let output = null;
  const all = { ...part.changes };
  for (const [name, some] of Object.entries(changes)) all[name] = [...(all[name] ?? []), ...some];
  const base = Object.keys(part.changes).length ? null : part.tensors;
  capture(part.run, part.inputs, all, (name, value) => name === outputOf(part.run) && (output = value), base);
  return output;
}

// How much the answer's log-probability changes without each head of a sublayer, and without all of it.
export async function importance(engine, { trace, name }) {
  const run = await engine.passes.get(trace).run();
  const known = run.about.stacks.find((stack) => name.startsWith(`${stack.name}.`))?.sublayers ?? [];
  if (!known.includes(kindOf(name))) throw new Error(`sublayer '${name}': expected a path that ends in ${known.join(" or ")}`);
  const part = await engine.passes.part(trace, outputOf(run));
  const answer = answerOf(part);
  const measure = (output) => (answer.rows.length ? logProbabilities(part, output, answer).reduce((a, b) => a + b, 0) : 0);
  const before = part.tensors.get(outputOf(run));
  const fall = (changes) => {
    const output = outputWith(part, changes);
    return outputOf(run) === "pooled" ? cosine(output.data, before.data) - 1 : measure(output) - measure(before);
  };
  const heads = [];
  for (let head = 0; kindOf(name) !== "feed_forward" && head < run.config.heads; head += 1) {
    heads.push(fall({ [`${name}.head_outputs`]: [{ kind: "scale", value: 0, at: { head: [head] } }] }));
    await pause();
  }
  return { heads, whole: fall({ [name]: [{ kind: "scale", value: 0 }] }) };
}

// What each head of an attention attends to most.
export async function roles(engine, { trace, name }) {
  if (!["attention", "cross_attention"].includes(kindOf(name))) throw new Error(`name '${name}': expected an attention`);
  const run = await engine.passes.get(trace).run();
  const part = await engine.passes.part(trace, `${name}.weights`, outputOf(run));
  const aligned = kindOf(name) === "cross_attention" ? await alignment(part) : null;
  return { heads: headRoles(part, name, aligned) };
}

function headRoles({ inputs, tensors }, name, aligned) {
  const weights = tensors.get(`${name}.weights`);
  const kinds = kindsOfKeys(name, inputs, weights.shape, aligned);
  return Array.from({ length: weights.shape[0] }, (_, head) => {
    const shares = Object.entries(kinds).map(([kind, holds]) => [kind, shareOf(at(weights, head), holds)]);
    const [kind, share] = shares.reduce((a, b) => (b[1] > a[1] ? b : a));
    return { name: share > MIN_ROLE_SHARE ? kind : "", share };
  });
}

// The mean attention to the keys of a kind, over the queries that have such a key.
function shareOf({ shape: [queries, keys], data }, holds) {
  const asked = [];
  for (let row = 0; row < queries; row += 1) {
    const chosen = [...Array(keys).keys()].filter((column) => holds(row, column));
    if (chosen.length) asked.push(chosen.reduce((sum, column) => sum + data[row * keys + column], 0));
  }
  return asked.length ? asked.reduce((a, b) => a + b, 0) / asked.length : 0;
}

// Which keys are of a kind: its name -> whether a query has it for a key.
function kindsOfKeys(name, { ids }, [, , keys], aligned) {
  if (aligned) {
    return {
      "the aligned token": (row, column) => aligned[row] >= 0 && column === aligned[row],
      "the beginning": (_row, column) => column === 0,
      "the end": (_row, column) => column === keys - 1,
    };
  }
  const own = ids[name.startsWith("encoder") ? "source" : "target"];
  const kinds = {
    "the previous token": (row, column) => column === row - 1,
    itself: (row, column) => column === row && row > 0,
    "the same token": (row, column) => own[row] === own[column] && column < row,
    "the beginning": (row, column) => column === 0 && row > 1,
  };
  if (name.startsWith("decoder")) return kinds;
  return {
    ...kinds,
    "the next token": (row, column) => column === row + 1,
    "the end": (row, column) => column === keys - 1 && row < keys - 2,
  };
}

// The source token on which each token of the target depends most: without it, its probability falls most. -1: none.
async function alignment(part) {
  const answer = answerOf(part);
  const count = part.inputs.ids.source.length;
  const before = logProbabilities(part, part.tensors.get("head.logits"), answer);
  const falls = [];
  for (let key = 0; key < count; key += 1) {
    const hidden = { "decoder.blocks.*.cross_attention.mask": [{ kind: "scale", value: 0, at: { key: [key] } }] };
    const after = logProbabilities(part, outputWith(part, hidden), answer);
    falls.push(before.map((value, i) => value - after[i]));
    await pause();
  }
  return before.map((_, i) => {
    const own = falls.map((row) => row[i]);
    return count > 1 && own[argmax(own)] > 0.1 ? argmax(own) : -1;
  });
}

const SAID = {
  "the aligned token": "alignment appears",
  "the previous token": "a head finds the previous token",
  half: "half of the answer is as at the end",
  all: "the whole answer is as at the end",
  near: "the vector has a cosine of 0.9 or more with the final one",
};

// The milestones of training for the text of a pass; a large model, which would take long, has none.
export async function milestones(engine, { trace }) {
  let id = trace;
  while (engine.passes.get(id).before) id = engine.passes.get(id).before;
  const { inputs, run: open } = engine.passes.get(id);
  const run = await open();
  if (run.about.parameters > MOST_PARAMETERS || !fits(run, inputs)) return { found: [] };
  const finished = await engine.passes.part(id, outputOf(run));
  const aligned = run.config.family === "encoder-decoder" ? await alignment(finished) : null;
  const signs = []; // [step, what is there]
  for (const step of run.about.snapshots) {
    const weights = await engine.snapshot(run.number, run, step);
    const early = { run: { ...run, weights }, inputs, tensors: new Map() };
    const watched = (name) => kindOf(name) === "weights" || name === outputOf(run);
    capture(early.run, inputs, {}, (name, value) => watched(name) && early.tensors.set(name, value));
    signs.push([step, new Set([...rolesIn(early, aligned), ...agreement(early, finished)])]);
    await pause();
  }
  const found = Object.entries(SAID).flatMap(([sign, what]) => since(sign, signs).map((step) => ({ step, what })));
  return { found: found.sort((a, b) => a.step - b.step || (a.what < b.what ? -1 : 1)) };
}

// The first step from which on a sign is there to the end; none if it is missing at the end, or there at once.
function since(sign, signs) {
  const last = signs.findLastIndex(([, seen]) => !seen.has(sign));
  return last < 0 ? [] : signs.slice(last + 1, last + 2).map(([step]) => step);
}

// Whether half, or all, of the likeliest tokens are those of the finished model, or a vector is near to its.
function agreement(early, finished) {
  const [old, now] = [early, finished].map(({ tensors }) => tensors.get(outputOf(finished.run)));
  if (outputOf(finished.run) === "pooled") return cosine(old.data, now.data) >= 0.9 ? ["near"] : [];
  const width = now.shape.at(-1);
  const answers = [old, now].map(({ data }) => rowsOf(tensor([data.length / width, width], data)).map(argmax));
  const same = answers[0].filter((id, i) => id === answers[1][i]).length / answers[0].length;
  return [...(same >= 0.5 && answers[0].length > 1 ? ["half"] : []), ...(same === 1 ? ["all"] : [])];
}

function rolesIn(part, aligned) {
  const attentions = [...part.tensors.keys()].filter((name) => kindOf(name) === "weights").map(ownerOf);
  return attentions.flatMap((name) => headRoles(part, name, kindOf(name) === "cross_attention" ? aligned : null).map((role) => role.name));
}
