// Attention, in the order it is computed: queries, keys -> scores -> mask -> softmax -> weights, values -> output.

import { make } from "../dom.js";
import { ask, saved, tensor } from "../data.js";
import { switchButton, toggle } from "../changes.js";
import { go } from "../state.js";
import { thumbnail } from "../thumbnail.js";
import { attentionsOf, kindOf, partName, shownIn, sidesOfAttention, titleOf } from "../kinds.js";
import { PREDICTS_NEXT, tensorMatrix } from "../show.js";
import { rowEditor } from "../weights.js";

export const attention = {
  title: "Attention",
  of: "block",
  short: "Queries, keys, values; from scores to weights, for any head",
  lead: "Each token compares its query with the keys of all tokens. The better a key matches, the more of that token's value it takes.",
  differs: true,
  fits: () => true,
  tensor: (context) => chosen(context).name,
  async draw(context) {
    const { state, run } = context;
    const stage = chosen(context);
    return [
      make("section", { class: "card with-stages" }, controls(state, run), await drawStages(context)),
      make(
        "section",
        { class: "card chosen-stage" },
        make(
          "div",
          { class: "row spread" },
          make("h2", {}, `${stage.kind.title}: ${titleOf(state.part)}, head ${state.head}`),
          make("small", {}, stage.kind.brief),
        ),
        await picture(context, stage),
        looksAhead(state, stage) && make("p", { class: "note" }, PREDICTS_NEXT),
        !saved && !context.second && (await editing(context, stage)),
      ),
    ];
  },
};

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

// The tensors as small pictures, in the order of computing, with operators between them.
async function drawStages(context) {
  const { state, run, trace } = context;
  const now = chosen(context);
  const drawn = await Promise.all(
    stages(context).map(async ({ stage, name, kind: { title, brief, palette, operator, axes } }, i) => {
      const { shape, data } = await tensor(trace.id, name, indexOf({ axes }, state, run).join(","), true);
      const small = thumbnail({ rows: shape[0], columns: shape[1], values: data, palette, label: title });
      const button = make(
        "button",
        {
          type: "button",
          class: `stage ${now.stage === stage ? "chosen" : ""}`,
          "aria-pressed": String(now.stage === stage),
          onclick: () => go({ stage }),
        },
        make("span", { class: "thumb" }, small),
        make("span", {}, make("strong", {}, title), make("small", {}, brief)),
      );
      return [i > 0 && make("span", { class: "operator", "aria-hidden": true }, operator), button];
    }),
  );
  return make("div", { class: "stages" }, drawn);
}

// The chosen tensor; a click on a cell of the mask forbids it.
async function picture(context, { stage, name, kind }) {
  const { state, run } = context;
  const [queries, keys] = sidesOfAttention(state);
  const onpick =
    stage === "mask" && !saved
      ? (row, column) => toggle(name, { kind: "scale", value: 0, at: { query: [row], key: [column] } })
      : undefined;
  return tensorMatrix(context, name, {
    index: indexOf(kind, state, run),
    down: kind.axes.at(-2) === "key" ? keys : queries,
    across: kind.axes.at(-1) === "key" ? keys : kind.axes.at(-1),
    palette: kind.palette,
    onpick,
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
