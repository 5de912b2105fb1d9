// Attention as lines between tokens; for cross-attention, an alignment of source and target.

import { drawn, make, percent, shown } from "../dom.js";
import { ask, tensor } from "../data.js";
import { go } from "../state.js";
import { highlight } from "../highlight.js";
import { attentionsOf, partName, sidesOfAttention } from "../kinds.js";
import { PREDICTS_NEXT, meanOverHeads } from "../show.js";

const STEP = 26;
const MOST = 80; // tokens on each side
const MOST_LINES = 200; // the strongest of them

export const alignment = {
  title: "Alignment",
  short: "Attention as lines between tokens",
  lead: ({ family }) =>
    `Attention weights as lines: the thicker, the larger the weight.${
      family === "encoder-decoder" ? " Cross-attention finds the source tokens that each target token translates." : ""
    }`,
  whole: true,
  fits: () => true,
  start: (run) => ({ layer: run.stacks.at(-1).layers - 1, ...(run.family === "encoder-decoder" && CROSS) }),
  tensor: ({ state, run }) => `${partName(chosen(state, run))}.weights`,
  async draw(context) {
    const { state, run } = context;
    const found = chosen(state, run);
    return [
      make(
        "section",
        { class: "card" },
        controls(state, run),
        draw(context, await weightsOf(context, found)),
        found.part === "cross_attention" && make("p", { class: "note" }, PREDICTS_NEXT),
        found.how === "rollout" && make("p", { class: "note" }, ROLLOUT),
      ),
    ];
  },
};

const CROSS = { stack: "decoder", part: "cross_attention" };
const ROLLOUT =
  "Rollout: the share of each token's last vector that comes from each input token, as the product of the weights of all layers. It ignores the norms of the values, so it is a rough estimate.";

// What to draw: in an encoder-decoder by default cross-attention; and how: one head, the mean of all heads, or (for
// self-attention) the rollout through all layers.
function chosen(state, run) {
  const cross = run.family === "encoder-decoder" && state.part === "cross_attention";
  const stack = cross ? "decoder" : state.stack;
  const layer = Math.min(state.layer, run.stacks.find(({ name }) => name === stack).layers - 1);
  const how = state.lines === "rollout" && cross ? "mean" : state.lines;
  return { ...state, stack, layer, how, part: cross ? "cross_attention" : "attention" };
}

async function weightsOf({ trace }, { how, head, ...where }) {
  if (how === "rollout") {
    const { shape, data } = await ask("rollout", { trace: trace.id, stack: where.stack });
    return { rows: shape[0], columns: shape[1], data };
  }
  const name = `${partName(where)}.weights`;
  if (how === "mean") return meanOverHeads(await tensor(trace.id, name));
  const { shape, data } = await tensor(trace.id, name, String(head));
  return { rows: shape[0], columns: shape[1], data };
}

function controls(state, run) {
  const found = chosen(state, run);
  const button = (title, pressed, change) =>
    make("button", { type: "button", "aria-pressed": String(pressed), onclick: () => go(change) }, title);
  const kinds = run.stacks.flatMap((stack) => attentionsOf(stack).map((part) => [stack.name, part]));
  const layers = Array.from(
    { length: run.stacks.find(({ name }) => name === found.stack).layers },
    (_, layer) => layer,
  );
  const heads = Array.from({ length: run.heads }, (_, head) =>
    button(head, found.how === "head" && head === state.head, { lines: "head", head }),
  );
  return [
    kinds.length > 1 &&
      make(
        "div",
        { class: "row tight" },
        kinds.map(([stack, part]) =>
          button(
            part === "cross_attention" ? "target → source" : `${stack}, to itself`,
            found.stack === stack && found.part === part,
            { stack, part },
          ),
        ),
      ),
    make(
      "div",
      { class: "row tight" },
      make("label", {}, "Block"),
      layers.map((layer) => button(layer, layer === found.layer, { layer })),
    ),
    make(
      "div",
      { class: "row tight" },
      make("label", {}, "Heads"),
      button("mean", found.how === "mean", { lines: "mean" }),
      heads,
      found.part === "attention" && button("rollout", found.how === "rollout", { lines: "rollout" }),
    ),
  ];
}

function draw({ state, run, trace }, { rows, columns, data }) {
  const [WIDTH, COLUMN] = state.beside || innerWidth < 760 ? [380, 140] : [620, 190];
  const { stack, part } = chosen(state, run);
  const cross = part === "cross_attention";
  const [queries, keys] = sidesOfAttention({ stack, part });
  const left = trace.tokens[queries].slice(0, MOST);
  const right = trace.tokens[keys].slice(0, MOST);
  const height = STEP * Math.max(left.length, right.length) + 30;
  const y = (index) => 36 + index * STEP;
  const following = (row) => (trace.tokens[queries][row + 1] ?? trace.guesses[row]).piece; // the token that is written next
  const label = ({ piece }, row) => (cross ? `${shown(piece)} → ${shown(following(row))}` : shown(piece));
  const found = [];
  for (let row = 0; row < Math.min(rows, MOST); row += 1) {
    for (let column = 0; column < Math.min(columns, MOST); column += 1) {
      const weight = data[row * columns + column];
      if (weight >= 0.03) found.push({ row, column, weight });
    }
  }
  found.sort((a, b) => a.weight - b.weight);
  const x1 = COLUMN + 6;
  const x2 = WIDTH - COLUMN - 6;
  const middle = WIDTH / 2;
  const lines = found.slice(-MOST_LINES).map(({ row, column, weight }) =>
    drawn("path", {
      class: "link",
      d: `M${x1} ${y(row)}C${middle} ${y(row)} ${middle} ${y(column)} ${x2} ${y(column)}`,
      "stroke-width": 0.6 + 5 * weight,
      "stroke-opacity": Math.min(1, 0.12 + 0.9 * weight),
      data: { token: `${queries}:${row}`, also: `${keys}:${column}` },
      onpointerenter: ({ target }) =>
        target.firstChild ??
        target.append(
          drawn("title", {}, `${label(left[row], row)} attends to ${shown(right[column].piece)}: ${percent(weight)}`),
        ),
    }),
  );
  const words = (labels, side, x, anchor) =>
    labels.map((text, index) => word(text.slice(0, COLUMN / 8), `${side}:${index}`, x, y(index), anchor));
  return drawn(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: "img",
      "aria-label": "Attention as lines between tokens",
      class: "alignment",
    },
    drawn("text", { class: "quiet", x: COLUMN, y: 12, "text-anchor": "end" }, cross ? "read → next" : "this token attends"),
    drawn("text", { class: "quiet", x: WIDTH - COLUMN, y: 12 }, cross ? "attends to these" : "to these"),
    lines,
    words(left.map(label), queries, COLUMN, "end"),
    words(right.map(({ piece }) => shown(piece)), keys, WIDTH - COLUMN, "start"),
  );
}

function word(text, token, x, y, anchor) {
  const [side] = token.split(":");
  const width = 12 + 7.5 * text.length;
  const start = anchor === "end" ? x - width : x;
  return drawn(
    "g",
    { data: { token }, onpointerenter: () => highlight(token) },
    drawn("rect", { class: "behind", x: start, y: y - 11, width, height: 22, rx: 5 }),
    drawn(
      "text",
      { class: `${side}-word`, x: anchor === "end" ? x - 4 : x + 4, y: y + 4, "text-anchor": anchor },
      text,
    ),
  );
}
