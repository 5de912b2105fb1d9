// Attention, in the order it is computed: queries, keys -> scores -> mask -> softmax -> weights, values -> output.

import { make, word } from "../dom.js";
import { ask, saved, tensor, tensorsOf } from "../data.js";
import { switchButton, toggle } from "../changes.js";
import { go, keep } from "../state.js";
import { thumbnail } from "../thumbnail.js";
import { attentionsOf, kindOf, partName, shownIn, sidesOfAttention, titleOf } from "../kinds.js";
import { importanceOf, roleTitle, rolesOf, tell } from "../insight.js";
import { PREDICTS_NEXT, tensorMatrix } from "../show.js";
import { rowEditor } from "../weights.js";
import { drawRow, mostTaken, notDrawn, rowTensors } from "./attentionrow.js";

export const attention = {
  title: "Attention",
  of: "block",
  short: "Queries, keys, values; from scores to weights, for any head",
  lead: "Each token compares its query with the keys of all tokens. The better a key matches, the more of that token's value it takes.",
  differs: true,
  fits: () => true,
  tensor: (context) => chosen(context).name,
  ownHeading: true,
  side: ({ state }) => sidesOfAttention(state)[0],
  at: chosenRow,
  async draw(context) {
    const { state, run } = context;
    const stage = chosen(context);
    const rowPicture = make("section", { class: "card row-picture", "aria-label": "One row, step by step" });
    const showRow = (row, animate) => drawChosenRow(context, rowPicture, row, animate);
    const [matrix, thumbnails, editor] = await Promise.all([
      picture(context, stage, showRow),
      drawStages(context),
      !saved && !context.second && editing(context, stage),
      showRow(chosenRow(context), animatedFor !== context.trace.id && !context.second),
    ]);
    animatedFor = context.trace.id;
    return [
      !state.beside && heading(state),
      make(
        "section",
        { class: "card chosen-stage" },
        make("div", { class: "large" }, matrix),
        make(
          "div",
          { class: "beside-matrix" },
          make("h2", {}, `${stage.kind.title}: ${titleOf(state.part)}, head ${state.head}`),
          make("small", {}, stage.kind.brief),
          told(context),
          controls(state, run),
          thumbnails,
        ),
      ),
      rowPicture,
      make(
        "section",
        { class: "card" },
        make("p", { class: "note" }, attention.lead, looksAhead(state, stage) ? ` ${PREDICTS_NEXT}` : ""),
        editor,
      ),
    ].filter(Boolean);
  },
};

// What this head attends to most, and how much the answer depends on it.
function told({ trace, state }) {
  const place = make("small", { class: "told" });
  const name = partName(state);
  if (trace.quick)
    Promise.all([rolesOf(trace, name), importanceOf(trace, name)]).then(
      ([roles, importance]) => {
        const role = roleTitle(roles[state.head]);
        place.textContent = `${role ? `Mostly to ${role}. ` : ""}${tell(importance.heads[state.head], trace)}.`;
      },
      () => {}, // a saved page of a large model has no measurements
    );
  return place;
}

let animatedFor = ""; // the steps of a row appear one by one only once for a text

// The row that is drawn step by step: the chosen one; at first one that has tokens before and after it.
function chosenRow({ state, trace }) {
  const [side] = sidesOfAttention(state);
  const { length } = trace.tokens[side];
  return state.token >= 0 && state.token < length ? state.token : Math.min(length - 1, Math.floor(length / 2));
}

async function drawChosenRow(context, element, row, animate) {
  const { state, trace } = context;
  const [querySide, keySide] = sidesOfAttention(state);
  const pieces = (side) => trace.tokens[side].map(({ piece }) => word(piece));
  const names = { query: pieces(querySide)[row], keys: pieces(keySide) };
  const sides = { query: querySide, keys: keySide };
  const found = await rowTensors(context, partName(state), row);
  const again = (animated) => drawRow(found, { names, sides, animate: animated });
  const replay = make(
    "button",
    { type: "button", class: "plain", onclick: () => show(true), "aria-label": "Show the steps again, one by one" },
    "↻ step by step",
  );
  const show = (animated) =>
    element.replaceChildren(
      make(
        "div",
        { class: "row spread" },
        make("h2", {}, make("b", { class: querySide }, names.query), mostTaken(found, names)),
        make("span", { class: "row tight" }, make("small", {}, notDrawn(found)), replay),
      ),
      again(animated),
    );
  show(animate);
  element.dataset.row = row;
}

// In one line, so that the matrix is in sight.
function heading(state) {
  const place = make("small", {}, `${state.stack}, block ${state.layer}`);
  return make("div", { class: "row spread" }, make("h1", {}, attention.title), place);
}

// The tensors of this attention: what the address calls them ("out" is the output of the sublayer), name and kind.
function stages({ state, trace }) {
  const output = partName(state);
  return shownIn("attention", trace, output).map((name) => ({
    stage: name === output ? "out" : name.slice(output.length + 1),
    name,
    kind: kindOf(trace, name),
  }));
}

function chosen(context) {
  const all = stages(context);
  const find = (wanted) => all.find(({ stage }) => stage === wanted);
  return find(context.state.stage) ?? find("weights");
}

const isPairs = ({ axes }) => axes.includes("query") && axes.includes("key");

function looksAhead({ part }, { stage, kind }) {
  return part === "cross_attention" && isPairs(kind) && stage !== "mask";
}

// The index of the head in a tensor; keys and values may be shared by several heads.
function indexOf({ axes }, { head }, run) {
  if (!axes.includes("head")) return [];
  return [axes.includes("query") ? head : Math.floor((head * run.kv_heads) / run.heads)];
}

function controls(state, run) {
  const heads = Array.from({ length: run.heads }, (_, head) =>
    make("button", { type: "button", "aria-pressed": String(head === state.head), onclick: () => go({ head }) }, head),
  );
  const parts = attentionsOf(run.stacks.find(({ name }) => name === state.stack)).map((part) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(part === state.part), onclick: () => go({ part }) },
      part === "attention" ? "to itself" : "to the source",
    ),
  );
  return make(
    "div",
    { class: "row" },
    make("span", { class: "row tight" }, make("label", {}, "Head"), heads),
    parts.length > 1 && make("span", { class: "row tight" }, parts),
  );
}

// The tensors as small pictures, in the order of computing.
async function drawStages(context) {
  const { state, run, trace } = context;
  const now = chosen(context);
  const all = stages(context);
  const indices = all.map(({ kind }) => indexOf(kind, state, run).join(","));
  const found = await tensorsOf(trace.id, all.map(({ name }) => name), indices, true);
  const drawn = all.map(({ stage, kind: { title, palette } }, i) => {
    const [rows, columns] = found[i].shape;
    const small = thumbnail({ rows, columns, values: found[i].data, palette, label: title });
    return make(
      "button",
      {
        type: "button",
        class: `stage ${now.stage === stage ? "chosen" : ""}`,
        "aria-pressed": String(now.stage === stage),
        onclick: () => go({ stage }),
      },
      make("span", { class: "thumb" }, small),
      make("strong", {}, title),
    );
  });
  return make("div", { class: "stages" }, drawn);
}

// The chosen tensor; a click chooses the row that is drawn step by step, in the mask it forbids a cell.
async function picture(context, { stage, name, kind }, showRow) {
  const { state, run } = context;
  const [queries, keys] = sidesOfAttention(state);
  const down = kind.axes.at(-2) === "key" ? keys : queries;
  const choose = (row) => {
    keep({ token: row });
    showRow(row, false);
    for (const chip of document.querySelectorAll("#strips .token"))
      chip.classList.toggle("picked", chip.dataset.token === `${queries}:${row}`);
  };
  const forbid = (row, column) => toggle(name, { kind: "scale", value: 0, at: { query: [row], key: [column] } });
  const chooses = kind.axes.includes("query") || kind.axes.at(-2) === "token";
  const hidden = stage === "scores" && (await tensor(context.trace.id, `${partName(state)}.mask`, String(state.head)));
  return tensorMatrix(context, name, {
    index: indexOf(kind, state, run),
    down,
    across: kind.axes.at(-1) === "key" ? keys : kind.axes.at(-1),
    palette: kind.palette,
    onpick: stage === "mask" && !saved ? forbid : chooses ? choose : undefined,
    isMasked: hidden ? (row, column) => !hidden.data[row * hidden.shape[1] + column] : undefined,
    height: 196,
  });
}

// What can be changed here: the head, the whole attention, and a row of the matrix that takes part.
async function editing({ state, run, trace }, { stage, name }) {
  const output = partName(state);
  const buttons = [
    switchButton(state, `${output}.head_outputs`, { head: [state.head] }, `head ${state.head}`),
    switchButton(state, output, {}, "the whole attention"),
  ];
  const hint =
    stage === "mask" && make("span", { class: "note" }, "Click a cell to mask that pair of tokens, in all heads.");
  const { parameters } = await ask("story", { trace: trace.id, name });
  const matrix = parameters.find((each) => run.matrices[each]);
  return [make("div", { class: "row" }, buttons, hint), matrix && rowEditor(matrix, run.matrices[matrix])];
}
