// The residual stream: one vector for each token, that every sublayer reads and adds to.

import { make, number } from "../dom.js";
import { ask, tensorsOf } from "../data.js";
import { go } from "../state.js";
import { matrix } from "../matrix.js";
import { names, tokenKeys, token } from "../tokens.js";
import { sideOf, streamOf, streamTitle, whereIs } from "../kinds.js";
import { dot, lengthOf, pickedToken } from "../show.js";

export const residual = {
  title: "Residual stream",
  short: "How each token's vector changes from layer to layer",
  lead: "One vector for each token, from the first layer to the last. Every sublayer reads it and adds to it; nothing else passes between layers.",
  whole: true,
  fits: () => true,
  side: ({ state }) => sideOf(state.stack),
  tensor: ({ state, run }) => (run.norm_order === "pre" ? `${state.stack}.norm` : streamOf(run, state.stack).at(-1)),
  async draw(context) {
    const { state, trace, run } = context;
    const side = sideOf(state.stack);
    const all = streamOf(run, state.stack);
    const at = pickedToken(context, side);
    const [long, found] = await Promise.all([
      ask("lengths", { trace: trace.id, stack: state.stack }),
      tensorsOf(trace.id, all, all.map(() => String(at))),
    ]);
    const rows = found.map(({ data }) => data);
    const stacks =
      run.stacks.length > 1 &&
      make(
        "div",
        { class: "row tight" },
        run.stacks.map(({ name }) =>
          make(
            "button",
            { type: "button", "aria-pressed": String(name === state.stack), onclick: () => go({ stack: name }) },
            name,
          ),
        ),
      );
    return [
      stacks,
      lengths(context, side, all, long),
      make(
        "section",
        { class: "card" },
        make(
          "div",
          { class: "row" },
          make("h2", {}, "Through the layers:"),
          token(trace, side, at),
          make("small", {}, "choose another token at the top"),
        ),
        journey(all, rows),
      ),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "How much each sublayer changes it"),
        make("p", { class: "note" }, "The length of the difference between this token's vector after the sublayer and before it."),
        moves(trace, all, rows),
      ),
    ].filter(Boolean);
  },
};

// The length (the Euclidean norm) of each token's vector at each state of the stream.
function lengths({ trace }, side, all, long) {
  const upward = all.toReversed();
  const values = upward.flatMap((name) => long[name]);
  const picture = matrix({
    rows: all.length,
    columns: trace.tokens[side].length,
    values,
    palette: "weights",
    most: values.reduce((most, value) => Math.max(most, value)),
    rowNames: upward.map(streamTitle),
    columnNames: names(trace, side),
    columnTokens: tokenKeys(trace, side),
    label: "norm of each token's vector after each sublayer",
    onpick: (row, column) => go({ token: column }),
  });
  return make(
    "section",
    { class: "card" },
    make("h2", {}, "The length of each token's vector"),
    picture,
    make("p", { class: "note" }, "The last layer is at the top, as on the map. Click a cell to follow that token."),
  );
}

function journey(all, rows) {
  const columns = rows[0].length;
  const values = new Float32Array(rows.length * columns);
  rows.toReversed().forEach((data, row) => values.set(data, row * columns));
  return matrix({
    rows: all.length,
    columns,
    values,
    rowNames: all.toReversed().map(streamTitle),
    label: "one token's vector after each sublayer",
    cellNames: Array.from({ length: columns }, (_, i) => `channel ${i}`),
  });
}

function moves(trace, all, rows) {
  const steps = all.slice(1).map((name, i) => {
    const [before, after] = [rows[i], rows[i + 1]];
    const moved = lengthOf(after.map((value, channel) => value - before[channel]));
    const cosine = dot(before, after) / (lengthOf(before) * lengthOf(after));
    return { name, moved, cosine };
  });
  const most = Math.max(...steps.map(({ moved }) => moved));
  const bars = steps.toReversed().map(({ name, moved, cosine }) =>
    make(
      "div",
      { class: "bar" },
      make("button", { type: "button", class: "plain", onclick: () => go(whereIs(trace, name)) }, streamTitle(name)),
      make("i", { style: { "--part": moved / most }, title: `cosine with the vector before: ${number(cosine, 3)}` }),
      make("output", {}, number(moved, 2)),
    ),
  );
  return make("div", { class: "bars moves" }, bars);
}
