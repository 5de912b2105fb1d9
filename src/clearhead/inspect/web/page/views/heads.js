// All heads of all blocks; each can be opened, or switched off.

import { make } from "../dom.js";
import { saved, tensorsOf } from "../data.js";
import { isOff, knockOut, toggle } from "../changes.js";
import { attentionsOf, sidesOfAttention } from "../kinds.js";
import { factor, importanceColour, importanceOf, measure, roleTitle, rolesOf, tell } from "../insight.js";
import { go } from "../state.js";
import { PREDICTS_NEXT } from "../show.js";
import { thumbnail } from "../thumbnail.js";
import { names } from "../tokens.js";

const LETTERS = 11; // pixels of a row whose token can be read

export const heads = {
  title: "All heads",
  short: "Every layer × head; switch any of them off",
  lead: ({ family }) =>
    `The attention weights of every head of every block. Heads specialise, for instance on the previous token${
      family === "encoder-decoder" ? " or on the aligned word" : ""
    }. Switch one off to see whether the output changes.`,
  whole: true,
  differs: true,
  fits: () => true,
  async draw(context) {
    const kinds = context.run.stacks.flatMap((stack) =>
      attentionsOf(stack).map((part) => ({ stack: stack.name, layers: stack.layers, part })),
    );
    const cards = await Promise.all(kinds.map((kind) => drawKind(context, kind)));
    return [context.second ? null : legend(context, cards), ...cards].filter(Boolean);
  },
};

// What the colours and words under the heads mean; a large model is measured when that is asked for.
function legend({ trace }, cards) {
  const figures = () => cards.flatMap((card) => [...card.querySelectorAll("figure")]);
  const note = make(
    "p",
    { class: "note" },
    `Under each head: ${measure(trace)} (under the name of a block, without all its heads), and what gets most of its attention. The stronger the colour, the more depends on it.`,
  );
  const button = make(
    "button",
    {
      type: "button",
      onclick: () => {
        button.replaceWith(note);
        measureAll(trace, figures());
      },
    },
    "Measure the importance of every head",
  );
  if (trace.quick) measureAll(trace, figures());
  return make("div", { class: "row measures" }, trace.quick || saved ? note : button);
}

// Name and colour the heads, one attention after the other.
async function measureAll(trace, figures) {
  const paint = (badge, change, words) => {
    const { background, ink } = importanceColour(change);
    Object.assign(badge.style, { background, color: ink });
    badge.textContent = factor(change, trace);
    badge.title = words;
  };
  for (const name of new Set(figures.map(({ dataset }) => dataset.attention))) {
    const [importance, roles] = await Promise.all([importanceOf(trace, name), rolesOf(trace, name)]).catch(() => []);
    if (!roles) return;
    const mine = figures.filter(({ dataset }) => dataset.attention === name);
    const whole = mine[0].closest(".layer").querySelector(".whole");
    paint(whole, importance.whole, `Without all heads of this attention: ${tell(importance.whole, trace)}`);
    for (const figure of mine) {
      const head = Number(figure.dataset.head);
      paint(figure.querySelector(".importance"), importance.heads[head], tell(importance.heads[head], trace));
      figure.querySelector(".role").textContent = roleTitle(roles[head]);
    }
  }
}

const TITLES = { attention: "self-attention", cross_attention: "cross-attention: the target attends to the source" };

async function drawKind(context, { stack, layers, part }) {
  const names = Array.from({ length: layers }, (_, layer) => `${stack}.blocks.${layer}.${part}.weights`);
  const found = await differences(context, names, await tensorsOf(context.trace.id, names, [], true));
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

async function differences({ minus: other }, names, found) {
  if (!other) return found;
  const before = await tensorsOf(other.id, names, [], true);
  return found.map(({ shape, data }, i) => ({ shape, data: data.map((value, at) => value - before[i].data[at]) }));
}

// The tokens at the edges, if there are few enough to be read.
function edges({ trace, run, state }, where) {
  const [rowNames, columnNames] = sidesOfAttention(where).map((side) => names(trace, side));
  const most = state.beside ? 0 : (Math.min(168, 900 / run.heads) - 46) / LETTERS;
  return Math.max(rowNames.length, columnNames.length) <= most ? { rowNames, columnNames } : {};
}

function drawLayer(context, stack, layer, part, { shape, data }) {
  const name = `${stack}.blocks.${layer}.${part}`;
  const [count, rows, columns] = shape;
  const figures = Array.from({ length: count }, (_, head) => {
    const values = data.subarray(head * rows * columns, (head + 1) * rows * columns);
    return drawHead(
      context,
      { stack, layer, part, head, name },
      thumbnail({ rows, columns, values, palette: context.minus ? "signed" : "weights", label: `head ${head}`, ...edges(context, { stack, part }) }),
    );
  });
  const whole = make("b", { class: "importance whole", data: { attention: name } });
  return make("div", { class: "layer" }, make("div", {}, make("h3", {}, `Block ${layer}`), whole), figures);
}

function drawHead({ state, second }, { stack, layer, part, head, name }, picture) {
  const at = { head: [head] };
  const off = isOff(state.changes, `${name}.head_outputs`, at) && !second;
  const open = () => go({ view: "attention", stack, layer, part, head, stage: "weights" });
  const flip = () => toggle(`${name}.head_outputs`, knockOut(at));
  const where = `${stack} block ${layer} ${part.replace("_", "-")} head ${head}`;
  return make(
    "figure",
    { class: off ? "off" : "", data: { attention: name, head } },
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
    make("div", { class: "said" }, make("b", { class: "importance" }), make("span", { class: "role" })),
  );
}
