// What a tensor is, and how one cell of it was computed, as inspect/story.py and explain.py.

import { Cell, EXPLAIN } from "../cells.js";
import { equals, math } from "../formula.js";
import { axesOf, entryOf, fullAxes, labelsOf, matches, sideOf, whole } from "../names.js";
import { changedWeights } from "../patch.js";
import { at } from "../tensor.js";

const MOST_TERMS = 8; // of the sum that gives a cell

// The axes of a tensor as in Python, with the batch, and their sizes.
function fullShape(run, name, { shape }) {
  const axes = fullAxes(run, name);
  const own = axesOf(run, name, shape.length);
  const full = axes.filter((axis) => axis === "batch" || own.includes(axis));
  return [full, full.map((axis) => (axis === "batch" ? 1 : shape[own.indexOf(axis)]))];
}

export async function story(engine, { trace, name }) {
  const run = await engine.passes.get(trace).run();
  const { kind, parents, parameters } = entryOf(run, name);
  const part = await engine.passes.part(trace, name);
  const [axes, shape] = fullShape(run, name, part.tensors.get(name));
  const words = axes.map((axis, i) => {
    const [one, several] = run.counted[axis] ?? [axis, `${axis}s`];
    return `${shape[i].toLocaleString("en")} ${shape[i] === 1 ? one : several}`;
  });
  return { ...run.kinds[kind].story, name, parents, parameters, shape, shape_in_words: words.join(" × ") };
}

export async function cell(engine, { trace, name, index }) {
  const run = await engine.passes.get(trace).run();
  const { kind, parents } = entryOf(run, name);
  const part = await engine.passes.part(trace, name, ...parents);
  const value = part.tensors.get(name);
  const places = index.split(",").filter(Boolean).map((each) => whole("index", each, 10 ** 8));
  const [axes, shape] = fullShape(run, name, value);
  if (places.length !== value.shape.length || places.some((place, axis) => place >= value.shape[axis])) {
    const full = [...places];
    if (axes.includes("batch")) full.splice(axes.indexOf("batch"), 0, 0);
    throw new Error(`cell [${full.join(", ")}] of ${name}: its shape is [${shape.join(", ")}]; give one number for each axis, from 0`);
  }
  const own = axesOf(run, name, value.shape.length);
  const indices = Object.fromEntries(own.map((axis, i) => [axis, places[i]]));
  const weights = changedWeights(run, run.weights, part.changes);
  const found = EXPLAIN[run.kinds[kind].explain](new Cell(part, name, indices, weights));
  const terms = found.terms.map(([label, ...factors]) => ({ label, value: factors.reduce((a, b) => a * b, 1) }));
  return {
    place: placeOf(run, part.inputs, name, axes, shape, indices),
    value: found.value,
    traced: at(value, ...places).data[0],
    changed: Object.keys(part.changes).some((pattern) => matches(name, pattern)),
    formula: math(found.formula),
    numbers: math(equals("", found.numbers)),
    terms: terms.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, MOST_TERMS),
  };
}

// Where a cell is, in words: head 2, query 'red', key 'car'.
function placeOf(run, inputs, name, axes, shape, indices) {
  const words = axes.map((axis, i) => {
    const label = labelsOf(run, inputs, name, axis, shape[i])[indices[axis] ?? 0];
    const quoted = sideOf(run, name, axis) || axis === "word" ? quote(label) : label;
    return axis === "head" ? quoted : `${axis} ${quoted}`;
  });
  return (axes[0] === "batch" ? words.slice(1) : words).join(", ");
}

// A text in quotation marks, as Python writes it.
function quote(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return mark + inside.replace(/(?! )[\p{C}\p{Z}]/gu, escaped) + mark;
}

function escaped(character) {
  const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  const code = character.codePointAt(0).toString(16);
  const [letter, digits] = code.length < 3 ? ["x", 2] : code.length < 5 ? ["u", 4] : ["U", 8];
  return short ?? `\\${letter}${code.padStart(digits, "0")}`;
}
