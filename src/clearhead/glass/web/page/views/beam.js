// Beam search as the tree of its hypotheses.

import { drawn, make, number, percent, shown } from "../dom.js";
import { ask } from "../data.js";
import { go } from "../state.js";

const STEP = 112;
const ROW = 38;

export const beam = {
  title: "Beam search",
  short: "Several hypotheses in parallel, as a tree",
  lead: "Beam search keeps the few likeliest hypotheses at each step and drops the others. At the end, the complete hypothesis with the best score is chosen: its log-probability over a length penalty.",
  whole: true,
  writes: true,
  fits: (run) => run.family !== "encoder-only",
  async draw({ state, trace }) {
    const width = Math.min(8, Math.max(1, state.width));
    const found = await ask("beam", { trace: trace.id, width }).catch((error) => ({ error: error.message }));
    if (found.error) return [make("p", { class: "note" }, found.error)];
    const { nodes, texts } = found;
    const choose = Array.from({ length: 8 }, (_, i) =>
      make(
        "button",
        { type: "button", "aria-pressed": String(i + 1 === width), onclick: () => go({ width: i + 1 }) },
        i + 1,
      ),
    );
    const best = nodes.filter(({ rank }) => rank >= 0).sort((a, b) => a.rank - b.rank);
    return [
      make(
        "section",
        { class: "card" },
        make("div", { class: "row tight" }, make("label", {}, "Width"), choose),
        make("p", { class: "note" }, "Each token with its probability after the tokens before it; the best hypothesis is filled."),
        make("div", { class: "scroll" }, tree(nodes)),
      ),
      make("section", { class: "card" }, make("h2", {}, "The hypotheses, best first"), ranking(best, texts)),
    ];
  },
};

function ranking(best, texts) {
  const rows = best.map(({ score, total }, i) =>
    make(
      "tr",
      {},
      make("td", {}, i + 1),
      make("td", { class: "text" }, texts[i]),
      make("td", {}, number(total, 2)),
      make("td", {}, number(score, 3)),
    ),
  );
  const head = ["", "text", "log-probability", "score"].map((title) => make("th", {}, title));
  return make(
    "div",
    { class: "scroll" },
    make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)),
  );
}

// Leaves get rows from top to bottom; a parent is in the middle of its children.
function layout(nodes) {
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach(({ parent }, i) => (parent < 0 ? roots : children[parent]).push(i));
  const rows = [];
  let leaves = 0;
  const place = (i) => {
    const below = children[i].map(place);
    rows[i] = below.length ? (below[0] + below.at(-1)) / 2 : leaves++;
    return rows[i];
  };
  roots.forEach(place);
  return { rows, leaves, onPath: marked(nodes) };
}

// The nodes of the best hypothesis.
function marked(nodes) {
  const found = new Set();
  for (let i = nodes.findIndex(({ rank }) => rank === 0); i >= 0; i = nodes[i].parent) found.add(i);
  return found;
}

// The probability of a token after the ones before it.
function chance(nodes, { total, parent }) {
  return Math.exp(total - (parent < 0 ? 0 : nodes[parent].total));
}

function tree(nodes) {
  const { rows, leaves, onPath } = layout(nodes);
  const depth = Math.max(...nodes.map((node) => node.depth));
  const x = (node) => node.depth * STEP - 30;
  const y = (i) => 24 + rows[i] * ROW;
  const lines = nodes.map((node, i) => {
    const [x0, y0] =
      node.parent < 0 ? [8, 24 + (ROW * (leaves - 1)) / 2] : [x(nodes[node.parent]) + 44, y(node.parent)];
    const middle = (x0 + x(node) - 44) / 2;
    return drawn("path", {
      class: `branch ${onPath.has(i) ? "best" : ""}`,
      d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y(i)} ${x(node) - 44} ${y(i)}`,
      "stroke-width": onPath.has(i) ? 3 : 1.2,
    });
  });
  const boxes = nodes.map((node, i) => {
    const kind = onPath.has(i) ? "best" : node.rank >= 0 ? "complete" : "";
    return drawn(
      "g",
      { class: `node ${kind}` },
      drawn("rect", { x: x(node) - 44, y: y(i) - 16, width: 88, height: 32, rx: 6 }),
      drawn("text", { x: x(node), y: y(i) - 2, "text-anchor": "middle" }, shown(node.word).slice(0, 12)),
      drawn("text", { x: x(node), y: y(i) + 11, "text-anchor": "middle", class: "odds" }, percent(chance(nodes, node))),
      drawn("title", {}, `log-probability of the hypothesis ${number(node.total, 3)}`),
    );
  });
  const width = depth * STEP + 20;
  const height = leaves * ROW + 30;
  return drawn(
    "svg",
    {
      class: "tree",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Tree of ${nodes.length} hypotheses`,
    },
    lines,
    drawn("circle", { class: "dot", cx: 8, cy: 24 + (ROW * (leaves - 1)) / 2, r: 5 }),
    boxes,
  );
}
