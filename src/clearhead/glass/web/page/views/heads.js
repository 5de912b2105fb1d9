// All heads of all blocks; each can be opened, or switched off.

import { make } from "../dom.js";
import { saved, tensorsOf } from "../data.js";
import { isOff, knockOut, toggle } from "../changes.js";
import { attentionsOf, sidesOfAttention } from "../kinds.js";
import { go } from "../state.js";
import { PREDICTS_NEXT } from "../show.js";
import { thumbnail } from "../thumbnail.js";
import { names } from "../tokens.js";

const MOST_NAMES = 18; // tokens at the edges of a small picture

export const heads = {
  title: "All heads",
  short: "Every layer × head; switch any of them off",
  lead: "The attention weights of every head of every block. Heads specialise, for instance on the previous token or on the same word. Switch one off to see whether the output changes.",
  whole: true,
  fits: () => true,
  async draw(context) {
    const kinds = context.run.stacks.flatMap((stack) =>
      attentionsOf(stack).map((part) => ({ stack: stack.name, layers: stack.layers, part })),
    );
    return Promise.all(kinds.map((kind) => drawKind(context, kind)));
  },
};

const TITLES = { attention: "self-attention", cross_attention: "cross-attention: the target attends to the source" };

async function drawKind(context, { stack, layers, part }) {
  const names = Array.from({ length: layers }, (_, layer) => `${stack}.blocks.${layer}.${part}.weights`);
  const found = await tensorsOf(context.trace.id, names, "", true);
  const rows = found.map((weights, layer) => drawLayer(context, stack, layer, part, weights));
  const grid = make("div", { class: "heads", style: { "--heads": context.run.heads } }, rows);
  return make(
    "section",
    { class: "card" },
    make("h2", {}, `${stack[0].toUpperCase()}${stack.slice(1)}, ${TITLES[part]}`),
    grid,
    part === "cross_attention" && make("p", { class: "note" }, PREDICTS_NEXT),
  );
}

// The tokens at the edges, if there are few enough to be read.
function edges(trace, where) {
  const [rowNames, columnNames] = sidesOfAttention(where).map((side) => names(trace, side));
  return Math.max(rowNames.length, columnNames.length) <= MOST_NAMES ? { rowNames, columnNames } : {};
}

function drawLayer(context, stack, layer, part, { shape, data }) {
  const name = `${stack}.blocks.${layer}.${part}`;
  const [count, rows, columns] = shape;
  const figures = Array.from({ length: count }, (_, head) => {
    const values = data.subarray(head * rows * columns, (head + 1) * rows * columns);
    return drawHead(
      context,
      { stack, layer, part, head, name },
      thumbnail({ rows, columns, values, palette: "weights", label: `head ${head}`, ...edges(context.trace, { stack, part }) }),
    );
  });
  return make("div", { class: "layer" }, make("h3", {}, `Block ${layer}`), figures);
}

function drawHead({ state, second }, { stack, layer, part, head, name }, picture) {
  const at = { head: [head] };
  const off = isOff(state.changes, `${name}.head_outputs`, at) && !second;
  const open = () => go({ view: "attention", stack, layer, part, head, stage: "weights" });
  const flip = () => toggle(`${name}.head_outputs`, knockOut(at));
  const where = `${stack} block ${layer} ${part.replace("_", "-")} head ${head}`;
  return make(
    "figure",
    { class: off ? "off" : "" },
    make("button", { type: "button", class: "open", "aria-label": `Open ${where}`, onclick: open }, picture),
    make(
      "figcaption",
      {},
      `head ${head}`,
      !saved &&
        !second &&
        make(
          "button",
          {
            type: "button",
            "aria-pressed": String(off),
            "aria-label": `Switch ${off ? "on" : "off"} ${where}`,
            title: off ? "Switch on" : "Switch off",
            onclick: flip,
          },
          off ? "switch on" : "switch off",
        ),
    ),
  );
}
