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
  fits: (run) => run.family !== "encoder-only",
  async draw({ state, trace, run }) {
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
        make(
          "p",
          { class: "note" },
          "Each token with its probability after the tokens before it; the best hypothesis is filled.",
          run.family === "decoder-only" && " Of a continuation, the first tokens are shown.",
        ),
        make("div", { class: "scroll" }, tree(nodes)),
      ),
      make("section", { class: "card" }, make("h2", {}, "The hypotheses, best first"), ranking(nodes, best, texts)),
    ];
  },
};

// Two hypotheses with the same text differ in their tokens, which are shown then.
function ranking(nodes, best, texts) {
  const isTwice = (text) => texts.filter((other) => other === text).length > 1;
  const pieces = ({ word, parent }) => (parent < 0 ? shown(word) : `${pieces(nodes[parent])} ${shown(word)}`);
  const rows = best.map((node, i) => [node, texts[i]]).map(([{ score, total, ...node }, text], i) =>
    make(
      "tr",
      {},
      make("td", {}, i + 1),
      make("td", { class: "text" }, text, isTwice(text) && make("small", {}, pieces(node))),
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

// The best hypothesis is a straight line at the top. Every other branch continues straight with its best token, in the first
// row below its parent in which there is room; the latest branches are placed first, so that lines rarely cross.
function layout(nodes) {
  const onPath = marked(nodes);
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach(({ parent }, i) => (parent < 0 ? roots : children[parent]).push(i));
  const bestFirst = (all) => all.toSorted((a, b) => onPath.has(b) - onPath.has(a) || nodes[b].total - nodes[a].total);
  const rows = [];
  const taken = []; // for each row, the first and the last depth of each branch
  const place = (start, above) => {
    const line = [start];
    while (children[line.at(-1)].length) line.push(bestFirst(children[line.at(-1)])[0]);
    const [from, to] = [nodes[start].depth, nodes[line.at(-1)].depth];
    let row = above + 1;
    while (taken[row]?.some(([first, last]) => from <= last && first <= to)) row += 1;
    (taken[row] ??= []).push([from, to]);
    for (const i of line) rows[i] = row;
    for (const i of line.toReversed()) for (const other of bestFirst(children[i]).slice(1)) place(other, row);
  };
  const [best, ...others] = bestFirst(roots);
  place(best, -1);
  for (const root of others) place(root, 0);
  return { rows, leaves: taken.length, onPath };
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
    const [x0, y0] = node.parent < 0 ? [8, 24] : [x(nodes[node.parent]) + 44, y(node.parent)];
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
    drawn("circle", { class: "dot", cx: 8, cy: 24, r: 5 }),
    boxes,
  );
}
