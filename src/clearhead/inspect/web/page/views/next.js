// The next token: its probabilities, and the effect of temperature, top-k and top-p.

import { make, number, percent, shown } from "../dom.js";
import { ask, tensor } from "../data.js";
import { go } from "../state.js";
import { lastSide, pickedToken, softmax } from "../show.js";
import { token } from "../tokens.js";

const SHOWN = 24;
const LEAST = 0.001; // less likely tokens are summed up in one row, after the first few
const FEWEST = 5;

export const next = {
  title: "Next token",
  short: "Probabilities, with temperature, top-k and top-p",
  titleFor: ({ family }) => (family === "encoder-only" ? "Predicted token" : "Next token"),
  lead: ({ family }) =>
    `The logits are the dot products of the last vector with the vector of every token. The softmax turns them into probabilities${
      family === "encoder-only" ? " of the tokens that can stand here." : ", from which the next token is chosen or sampled."
    }`,
  uncertain: true, // starts at the position with the highest entropy
  fits: (run) => run.head === "vocabulary",
  side: ({ trace }) => lastSide(trace),
  tensor: () => "head.logits",
  async draw(context) {
    const { state, trace } = context;
    const side = lastSide(trace);
    const at = pickedToken(context, side);
    const [{ data: logits }, { ids, words }] = await Promise.all([
      tensor(trace.id, "head.logits", String(at)),
      ask("next", { trace: trace.id, token: at }),
    ]);
    const bars = make("div", { class: "bars next-words" });
    const settings = { temperature: Number(state.temperature) || 1, top_k: state.top_k, top_p: Number(state.top_p) };
    const redraw = () => bars.replaceChildren(...drawBars(logits, ids, words, settings, Boolean(state.beside)));
    redraw();
    const after = make(
      "div",
      { class: "row" },
      make("h2", {}, trace.tokens.target ? "After" : "In place of"),
      token(trace, side, at),
      make("small", {}, "choose another token at the top"),
    );
    return [make("section", { class: "card" }, after, sliders(settings, logits.length, redraw), bars)];
  },
};

// The probabilities to sample from, by the rules of decode/sampling.py: first top-k, then top-p of the rest; equally likely
// tokens are kept or removed together.
export function kept(logits, { temperature, top_k, top_p }) {
  const order = Array.from(logits.keys());
  if (top_k || top_p < 1) order.sort((a, b) => logits[b] - logits[a]); // slow, so only if needed
  const all = softmax(logits, temperature);
  const least = top_k ? logits[order[Math.min(top_k, order.length) - 1]] : -Infinity;
  let left = order.filter((id) => logits[id] >= least);
  const mass = left.reduce((sum, id) => sum + all[id], 0);
  if (top_p < 1) {
    let before = 0;
    let lowest = Infinity;
    for (const id of left) {
      if (before / mass < top_p) lowest = logits[id];
      before += all[id];
    }
    left = left.filter((id) => logits[id] >= lowest);
  }
  const sum = left.reduce((total, id) => total + all[id], 0);
  return { all, left: new Map(left.map((id) => [id, all[id] / sum])) };
}

// In a comparison both lists have the same scale; one alone uses the whole width.
function drawBars(logits, ids, words, settings, shared) {
  const { all, left } = kept(logits, settings);
  const most = shared ? 1 : (left.get(ids[0]) ?? 1);
  const listed = ids.slice(0, SHOWN).filter((id, i) => i < FEWEST || (left.get(id) ?? all[id]) >= LEAST);
  const bars = listed.map((id, i) => {
    const probability = left.get(id) ?? all[id];
    return make(
      "div",
      { class: left.has(id) ? "bar" : "bar cut", "data-id": id, title: `id ${id}, logit ${number(logits[id], 3)}` },
      make("span", { class: "token" }, shown(words[i])),
      make("i", { style: { "--part": Math.min(1, probability / most) } }),
      make("output", { "data-probability": left.get(id) ?? 0 }, left.has(id) ? percent(probability) : "out"),
    );
  });
  const bits = [...left.values()].reduce((sum, p) => sum - (p > 0 ? p * Math.log2(p) : 0), 0);
  const note = `${left.size.toLocaleString("en")} of ${logits.length.toLocaleString("en")} tokens can be sampled; the entropy is ${bits.toFixed(2)} bits.`;
  return [...bars, others(left, listed, most), make("p", { class: "note" }, note)].filter(Boolean);
}

// One row for all tokens that are not listed.
function others(left, listed, most) {
  const rest = left.size - listed.filter((id) => left.has(id)).length;
  if (!rest) return null;
  const probability = Math.max(0, 1 - listed.reduce((sum, id) => sum + (left.get(id) ?? 0), 0));
  return make(
    "div",
    { class: "bar others" },
    make("span", {}, `${rest.toLocaleString("en")} others`),
    make("i", { style: { "--part": Math.min(1, probability / most) } }),
    make("output", {}, percent(probability)),
  );
}

function sliders(settings, vocabulary, redraw) {
  const ranges = [
    ["temperature", "Temperature", 0.05, 3, 0.05, (value) => value.toFixed(2)],
    ["top_k", "Top-k", 0, Math.min(100, vocabulary), 1, (value) => value || "all"],
    ["top_p", "Top-p", 0.05, 1, 0.01, (value) => value.toFixed(2)],
  ];
  return make(
    "div",
    { class: "columns sliders" },
    ranges.map(([key, title, min, max, step, words]) => {
      const output = make("output", {}, words(settings[key]));
      const slide = (event) => {
        settings[key] = Number(event.target.value);
        output.textContent = words(settings[key]);
        redraw();
      };
      const keep = () => go({ [key]: key === "top_k" ? settings[key] : String(settings[key]) }, true);
      const input = make("input", {
        type: "range",
        min,
        max,
        step,
        value: settings[key],
        "aria-label": title,
        name: key,
        oninput: slide,
        onchange: keep,
      });
      return make("label", {}, title, " ", output, input);
    }),
  );
}
