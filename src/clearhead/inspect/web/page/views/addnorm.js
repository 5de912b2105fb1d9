// Add & norm: the sublayer's output is added to the stream, and each token's vector is normalized.

import { fixed, make } from "../dom.js";
import { saved, tensor } from "../data.js";
import { switchButton } from "../changes.js";
import { reach } from "../colour.js";
import { kindOf, partName, sideOf, streamOf } from "../kinds.js";
import { tensorMatrix } from "../show.js";
import { token } from "../tokens.js";

export const addnorm = {
  title: "Add & norm",
  of: "block",
  short: "The residual connection; mean and standard deviation before and after",
  lead: ({ norm_order: order }) =>
    `The output of a sublayer is added to the stream; nothing is replaced. ${
      order === "pre"
        ? "The norm brings a copy of each token's vector to the same scale before a sublayer reads it; the stream itself grows."
        : "Then the norm brings each token's vector to the same scale, so that it does not grow with depth."
    }`,
  differs: true,
  fits: () => true,
  tensor: ({ state }) => `${partName(state)}_add_norm`,
  async draw(context) {
    const { trace, state, run } = context;
    const steps = tensorsInOrder(context);
    const found = new Map(await Promise.all(steps.map(async ({ name }) => [name, await tensor(trace.id, name)])));
    const side = sideOf(state.stack);
    const picture = ({ name }, most) =>
      tensorMatrix(context, name, { found: found.get(name), down: side, across: "channel", height: 170, most });
    const sum = steps.filter(({ sign }) => sign);
    const most = context.minus ? undefined : Math.max(...sum.map(({ name }) => reach(found.get(name).data, "signed")));
    const terms = await Promise.all(sum.map(async (step) => term(step, await picture(step, most))));
    const norms = await Promise.all(
      steps.filter(({ sign }) => !sign).map(async (step) => [make("h3", { class: "as-written" }, step.title), await picture(step)]),
    );
    const off =
      !saved &&
      !context.second &&
      make("div", { class: "row" }, switchButton(state, partName(state), {}, "the output of the sublayer"));
    return [
      make("section", { class: "card sum" }, make("h2", {}, "x + f = y, on one scale"), terms, off),
      make(
        "section",
        { class: "card" },
        make("h2", {}, run.norm_order === "pre" ? "The norm before the sublayer" : "The norm after the sum"),
        norms,
      ),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "Mean and standard deviation of each token's channels"),
        table(trace, side, steps, found),
      ),
    ];
  },
};

function term({ sign, title }, picture) {
  return make(
    "div",
    { class: "summand" },
    make("span", { class: "sign", "aria-hidden": true }, sign),
    make("div", {}, make("h3", { class: "as-written" }, title), picture),
  );
}

// The tensors in the order of computing: the norm comes after the sum (the paper), or before the sublayer. Those of the sum
// have a sign.
function tensorsInOrder({ state, trace, run }) {
  const here = partName(state);
  const stream = streamOf(run, state.stack);
  const titled = (name) => ({ title: kindOf(trace, name).title, name });
  const before = { sign: " ", title: "x: the stream before", name: stream[stream.indexOf(`${here}_add_norm`) - 1] };
  const sublayer = { sign: "+", title: "f: the output of the sublayer", name: here };
  const normalized = titled(`${here}_add_norm.norm.normalized`);
  const y = (name) => ({ sign: "=", title: run.norm_order === "pre" ? "y: the stream after" : "y: the sum", name });
  if (run.norm_order === "pre")
    return [before, normalized, titled(`${here}_add_norm.norm`), sublayer, y(`${here}_add_norm`)];
  return [before, sublayer, y(`${here}_add_norm.added`), normalized, titled(`${here}_add_norm`)];
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
    const cells = steps.map(({ name }) => {
      const { shape, data } = found.get(name);
      const [mean, std] = moments(data.subarray(index * shape[1], (index + 1) * shape[1]));
      return make("td", {}, `${fixed(mean)} ± ${fixed(std)}`);
    });
    return make("tr", {}, make("th", {}, token(trace, side, index)), cells);
  });
  const heads = steps.map(({ title }) => make("th", { scope: "col" }, title.split(":")[0]));
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
