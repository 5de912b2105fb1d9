// Add & norm: the sublayer's output is added to the stream, and each token's vector is normalized.

import { fixed, make } from "../dom.js";
import { saved, tensor } from "../data.js";
import { switchButton } from "../changes.js";
import { kindOf, partName, sideOf, streamOf } from "../kinds.js";
import { tensorMatrix } from "../show.js";
import { token } from "../tokens.js";

export const addnorm = {
  title: "Add & norm",
  of: "block",
  short: "The residual connection; mean and standard deviation before and after",
  lead: "The output of a sublayer is added to the stream; nothing is replaced. The norm brings each token's vector to the same scale, so that it does not grow with depth.",
  fits: () => true,
  tensor: ({ state }) => `${partName(state)}_add_norm`,
  async draw(context) {
    const { trace, state, run } = context;
    const steps = tensorsInOrder(context);
    const found = await Promise.all(steps.map(([, name]) => tensor(trace.id, name)));
    const side = sideOf(state.stack);
    const pictures = await Promise.all(
      steps.map(async ([title, name], i) =>
        make(
          "section",
          { class: "card" },
          make("h2", {}, title),
          await tensorMatrix(context, name, { found: found[i], down: side, across: "channel", height: 190 }),
        ),
      ),
    );
    const spread = make(
      "section",
      { class: "card" },
      make("h2", {}, "Mean and standard deviation of each token's channels"),
      table(trace, side, steps, found, run),
    );
    const off =
      !saved &&
      !context.second &&
      make("div", { class: "row" }, switchButton(state, partName(state), {}, "the output of the sublayer"));
    return [off, spread, ...pictures].filter(Boolean);
  },
};

// The tensors in the order of computing: the norm comes after the sum (the paper), or before the sublayer.
function tensorsInOrder({ state, trace, run }) {
  const here = partName(state);
  const stream = streamOf(run, state.stack);
  const before = ["x: the stream before", stream[stream.indexOf(`${here}_add_norm`) - 1]];
  const sublayer = ["f(x): the output of the sublayer", here];
  const titled = (name) => [kindOf(trace, name).title, name];
  const normalized = titled(`${here}_add_norm.norm.normalized`);
  const after = titled(`${here}_add_norm`);
  if (run.norm_order === "pre") return [before, normalized, titled(`${here}_add_norm.norm`), sublayer, after];
  return [before, sublayer, titled(`${here}_add_norm.added`), normalized, after];
}

function moments(values) {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return [mean, Math.sqrt(squares / values.length)];
}

function table(trace, side, steps, found) {
  const rows = trace.tokens[side].slice(0, 60).map((_, index) => {
    const cells = found.map(({ shape, data }) => {
      const [mean, std] = moments(data.subarray(index * shape[1], (index + 1) * shape[1]));
      return make("td", {}, `${fixed(mean)} ± ${fixed(std)}`);
    });
    return make("tr", {}, make("th", {}, token(trace, side, index)), cells);
  });
  const heads = steps.map(([title]) => make("th", { scope: "col" }, title.split(":")[0]));
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      { class: "moments" },
      make("thead", {}, make("tr", {}, make("th", {}), heads)),
      make("tbody", {}, rows),
    ),
  );
}
