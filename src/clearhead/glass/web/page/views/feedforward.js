// The feed-forward network: the same two matrices for every token, with a nonlinearity between them.

import { make, number, percent } from "../dom.js";
import { saved, tensor } from "../data.js";
import { switchButton } from "../changes.js";
import { kindOf, shownIn, sideOf } from "../kinds.js";
import { pickedToken, tensorMatrix } from "../show.js";
import { rowEditor } from "../weights.js";
import { token } from "../tokens.js";

export const feedforward = {
  title: "Feed-forward",
  of: "block",
  short: "Which neurons are active, for each token",
  lead: "Each token separately goes through a wide hidden layer and back. A neuron is active when the token's vector matches its row of the first matrix; then it adds its column of the second matrix to the stream.",
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
    return [strongest(context, side, inner), ...pictures, !saved && !context.second && editing(state, run)].filter(
      Boolean,
    );
  },
};

function name(state) {
  return `${state.stack}.blocks.${state.layer}.feed_forward`;
}

// The neurons with the largest values for the chosen token.
function strongest(context, side, { shape, data }) {
  const { trace, run } = context;
  const index = pickedToken(context, side);
  const row = Array.from(data.subarray(index * shape[1], (index + 1) * shape[1]), (value, neuron) => ({
    value,
    neuron,
  }));
  const silent = row.filter(({ value }) => value === 0).length / row.length;
  const top = row.toSorted((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 12);
  const most = Math.abs(top[0].value) || 1;
  const bars = top.map(({ value, neuron }) =>
    make(
      "div",
      { class: "bar" },
      make("span", {}, `neuron ${neuron}`),
      make("i", { style: { "--part": Math.abs(value) / most } }),
      make("output", {}, number(value, 3)),
    ),
  );
  const said =
    run.activation === "relu"
      ? `${percent(silent)} of the ${row.length} neurons are 0 here.`
      : `${row.length} neurons.`;
  return make(
    "section",
    { class: "card" },
    make("div", { class: "row" }, make("h2", {}, "The strongest neurons for"), token(trace, side, index)),
    make("p", { class: "note" }, `${said} Choose another token at the top.`),
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
