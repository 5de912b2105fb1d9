// The feed-forward network: the same two matrices for every token, with a nonlinearity between them.

import { make, number } from "../dom.js";
import { saved, tensor } from "../data.js";
import { switchButton } from "../changes.js";
import { kindOf, shownIn, sideOf } from "../kinds.js";
import { pickedToken, tensorMatrix } from "../show.js";
import { rowEditor } from "../weights.js";
import { token } from "../tokens.js";

const SHOWN = 12;

export const feedforward = {
  title: "Feed-forward",
  of: "block",
  short: "Which neurons are active, for each token",
  lead: "Each token separately goes through a wide hidden layer and back. A neuron is active when the token's vector matches its row of the first matrix; then it adds its column of the second matrix to the stream.",
  differs: true,
  fits: () => true,
  side: ({ state }) => sideOf(state.stack),
  tensor: ({ state }) => `${name(state)}.inner`,
  async draw(context) {
    const { state, trace, run } = context;
    const side = sideOf(state.stack);
    const inner = await tensor(trace.id, `${name(state)}.inner`);
    const pictures = await Promise.all(
      shownIn("feedforward", trace, name(state)).map(async (each) => {
        const { title, axes } = kindOf(trace, each);
        return make(
          "section",
          { class: "card" },
          make("h2", {}, title),
          await tensorMatrix(context, each, { down: side, across: axes.at(-1), height: 200 }),
        );
      }),
    );
    return [mostActive(context, side, inner), ...pictures, !saved && !context.second && editing(state, run)].filter(
      Boolean,
    );
  },
};

function name(state) {
  return `${state.stack}.blocks.${state.layer}.feed_forward`;
}

// The neurons with the largest values for the chosen token. By value, not by size: an activation such as GELU has a floor
// below 0, and a neuron there is off.
function mostActive(context, side, { shape, data }) {
  const { trace, run } = context;
  const index = pickedToken(context, side);
  const gated = run.activation === "swiglu" ? "" : ", the others are off or nearly so";
  const row = data.subarray(index * shape[1], (index + 1) * shape[1]);
  const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]);
  const active = row.reduce((count, value) => count + (value > 0), 0);
  const most = Math.max(...order.slice(0, SHOWN).map((neuron) => Math.abs(row[neuron]))) || 1;
  const bars = order.slice(0, SHOWN).map((neuron) =>
    make(
      "div",
      { class: "bar signed" },
      make("span", {}, `neuron ${neuron}`),
      make("i", { class: row[neuron] < 0 ? "minus" : "plus", style: { "--part": Math.abs(row[neuron]) / most } }),
      make("output", {}, number(row[neuron], 3)),
    ),
  );
  return make(
    "section",
    { class: "card most-active" },
    make("div", { class: "row" }, make("h2", {}, "The most active neurons for"), token(trace, side, index)),
    make(
      "p",
      { class: "note" },
      `${active.toLocaleString("en")} of the ${row.length.toLocaleString("en")} neurons are above 0${gated}. Choose another token at the top.`,
    ),
    make("div", { class: "bars" }, bars),
  );
}

function editing(state, run) {
  const matrixName = `${name(state)}.up.weight`;
  return make(
    "section",
    { class: "card" },
    make("h2", {}, "Change it"),
    make("div", { class: "row" }, switchButton(state, name(state), {}, "this feed-forward")),
    rowEditor(matrixName, run.matrices[matrixName]),
  );
}
