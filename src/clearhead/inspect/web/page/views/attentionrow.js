// One row of attention as one picture: the query and every key, their products, the scores, the softmax, and the weighted
// sum of the values. Columns are keys, and the steps of the computation follow each other downward.

import { fixed, make, percent, phone, still } from "../dom.js";
import { ask, tensorsOf } from "../data.js";
import { reach } from "../colour.js";
import { pixels } from "../thumbnail.js";

const MOST_KEYS = 10; // of more, the ones with the largest weights are shown
const MOST_ON_PHONE = 6;

// All tensors that enter one row: q (K), keys and values (S, K), scores, weights, mask (S), output (K).
export async function rowTensors({ trace, run, state }, part, row) {
  const { parents } = await ask("story", { trace: trace.id, name: `${part}.scores` });
  const [queryName, keyName] = parents;
  const { head } = state;
  const shared = String(Math.floor((head * run.kv_heads) / run.heads)); // heads may share keys and values
  const place = `${head},${row}`;
  const ofRow = [queryName, ...["scores", "weights", "mask", "head_outputs"].map((kind) => `${part}.${kind}`)];
  const [[keys, values], found] = await Promise.all([
    tensorsOf(trace.id, [keyName, `${part}.values`], [shared, shared]),
    tensorsOf(trace.id, ofRow, ofRow.map(() => place)),
  ]);
  const [q, scores, weights, mask, output] = found.map(({ data }) => data);
  return { q, keys, values, scores, weights, mask, output };
}

// The keys that are drawn: all, or those with the largest weights, in the order of the text.
function drawnKeys(weights) {
  const order = Array.from(weights.keys());
  const most = phone.matches ? MOST_ON_PHONE : MOST_KEYS;
  if (order.length <= most) return order;
  const best = order.sort((a, b) => weights[b] - weights[a]).slice(0, most);
  return best.sort((a, b) => a - b);
}

// names: {query, keys}: the tokens; sides: which text they are from; animate: whether the steps appear one by one.
export function drawRow(found, { names, sides, animate }) {
  const { q, keys, values, scores, weights, mask, output } = found;
  const columns = drawnKeys(weights);
  const size = q.length;
  const vector = ({ data }, key) => data.subarray(key * size, (key + 1) * size);
  const products = columns.map((key) => Float32Array.from(vector(keys, key), (value, c) => value * q[c]));
  const inputs = Math.max(reach(q, "signed"), ...columns.map((key) => reach(vector(keys, key), "signed")));
  const multiplied = Math.max(...products.map((each) => reach(each, "signed")));
  const taken = Math.max(...columns.map((key) => reach(vector(values, key), "signed")));
  const scoresReach = Math.max(...columns.map((key) => (mask[key] ? Math.abs(scores[key]) : 0)), 1e-9);
  const weighted = columns.map((key) => Float32Array.from(vector(values, key), (value) => value * weights[key]));
  const cells = (draw) => columns.map((key, i) => (mask[key] ? draw(key, i) : hatched()));
  const root = fixed(Math.sqrt(size), 1);
  const steps = [
    ["keys", columns.map((key) => make("b", { class: sides.keys }, names.keys[key]))],
    [["query", strip(q, inputs, `the query of ${names.query}`)], columns.map((key) => strip(vector(keys, key), inputs, "key"))],
    ["query × key", cells((_, i) => strip(products[i], multiplied, "products"))],
    [`sum / ${root} = score`, cells((key) => score(scores[key], scoresReach))],
    ["softmax = weight", cells((key) => weightBar(weights[key]))],
    ["value", columns.map((key) => strip(vector(values, key), taken, "value"))],
    ["weight × value", cells((_, i) => strip(weighted[i], taken, "weighted value"))],
  ];
  const grid = make(
    "div",
    { class: `attention-row ${animate && !still.matches ? "animated" : ""}`, style: { "--keys": columns.length } },
    steps.map(([label, content], step) => [
      make("span", { class: "step", style: { "--step": step } }, label),
      content.map((each) => make("span", { class: `step at-${step}`, style: { "--step": step } }, each)),
    ]),
    make("span", { class: "step", style: { "--step": 7 } }, "sum = output"),
    make("span", { class: "step whole", style: { "--step": 7 } }, strip(output, reach(output, "signed"), "output")),
  );
  return grid;
}

// A vector as a strip of colours, one for each channel.
function strip(values, most, label) {
  const canvas = make("canvas", { width: values.length, height: 1, role: "img", "aria-label": label });
  canvas.getContext("2d").putImageData(pixels({ rows: 1, columns: values.length, values }, "signed", most), 0, 0);
  return canvas;
}

function score(value, most) {
  const side = value < 0 ? "minus" : "plus";
  return make(
    "span",
    { class: "score" },
    make("i", { class: side, style: { "--part": Math.abs(value) / most } }),
    make("output", {}, fixed(value, 2)),
  );
}

function weightBar(weight) {
  return make(
    "span",
    { class: weight > 0.55 ? "weight strong" : "weight" },
    make("i", { style: { "--part": weight } }),
    make("output", {}, weight < 0.0005 ? "≈ 0" : percent(weight)),
  );
}

function hatched() {
  return make("span", { class: "hatched", title: "masked: this token comes later, or is padding" });
}

// " takes most from “car”: 97 %"
export function mostTaken({ weights }, names) {
  const best = weights.indexOf(Math.max(...weights));
  return ` takes most from “${names.keys[best]}”: ${percent(weights[best])}`;
}

// What the keys have that are not drawn.
export function notDrawn({ weights }) {
  const columns = drawnKeys(weights);
  const rest = weights.length - columns.length;
  const left = percent(Math.max(0, 1 - columns.reduce((sum, key) => sum + weights[key], 0)));
  return rest ? `${rest} more keys: ${left}` : "";
}
