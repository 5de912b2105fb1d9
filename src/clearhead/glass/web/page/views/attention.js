// Attention, in the order it is computed: queries, keys -> scores -> mask -> softmax -> weights, values -> output.

import { make } from "../dom.js";
import { saved, tensor } from "../data.js";
import { switchButton, toggle } from "../changes.js";
import { go } from "../state.js";
import { thumbnail } from "../thumbnail.js";
import { LOOKS_AHEAD, partName, sidesOfAttention, tensorMatrix } from "../show.js";
import { rowEditor } from "../weights.js";

// stage -> its title, what is done to get there, its palette, and what its columns are
const STAGES = {
  queries: { title: "Queries", about: "what each token asks", palette: "signed" },
  keys: { title: "Keys", about: "what each token offers", palette: "signed" },
  scores: { title: "Scores", about: "Q·Kᵀ / √d", palette: "signed" },
  mask: { title: "Mask", about: "who may look", palette: "weights" },
  weights: { title: "Weights", about: "softmax", palette: "weights" },
  values: { title: "Values", about: "what each token says", palette: "signed" },
  head_outputs: { title: "Head output", about: "weights · V", palette: "signed" },
  out: { title: "Output", about: "all heads, joined", palette: "signed" },
};

export const attention = {
  title: "Attention",
  of: "block",
  short: "Queries, keys, values; scores to weights, for any head",
  lead: "Each token asks a question (its query) and compares it with what every token offers (their keys). The better the fit, the more of that token's value it takes over.",
  fits: () => true,
  tensor: ({ state }) => stageName(state),
  async draw(context) {
    const { state, run } = context;
    const title = `${state.part === "cross_attention" ? "Cross-attention" : "Attention"}, head ${state.head}`;
    return [
      make("section", { class: "card with-road" }, controls(state, run), await road(context)),
      make(
        "section",
        { class: "card chosen-stage" },
        make(
          "div",
          { class: "row spread" },
          make("h2", {}, `${STAGES[state.stage].title}: ${title}`),
          make("small", {}, STAGES[state.stage].about),
        ),
        await chosenStage(context),
        looksAhead(state) && make("p", { class: "note" }, LOOKS_AHEAD),
        !saved && !context.second && editing(state, run),
      ),
    ];
  },
};

function looksAhead({ part, stage }) {
  return part === "cross_attention" && ["scores", "weights"].includes(stage);
}

function stageName(state) {
  return state.stage === "out" ? partName(state) : `${partName(state)}.${state.stage}`;
}

// Keys and values may be shared by several heads.
function headOf(stage, { head }, run) {
  return stage === "keys" || stage === "values" ? Math.floor((head * run.kv_heads) / run.heads) : head;
}

function controls(state, run) {
  const heads = Array.from({ length: run.heads }, (_, head) =>
    make("button", { type: "button", "aria-pressed": String(head === state.head), onclick: () => go({ head }) }, head),
  );
  const stack = run.stacks.find(({ name }) => name === state.stack);
  const kinds =
    stack.cross &&
    ["attention", "cross_attention"].map((part) =>
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
    kinds && make("span", { class: "row tight" }, kinds),
  );
}

const BETWEEN = { keys: "·", scores: "→", mask: "→", weights: "→", values: "·", head_outputs: "=", out: "→" };

async function road(context) {
  const { state, run, trace } = context;
  const stops = await Promise.all(
    Object.entries(STAGES).map(async ([stage, { title, about, palette }]) => {
      const name = stageName({ ...state, stage });
      const { shape, data } = await tensor(
        trace.id,
        name,
        stage === "out" ? "" : String(headOf(stage, state, run)),
        true,
      );
      const picture = thumbnail({ rows: shape[0], columns: shape[1], values: data, palette, label: title });
      const stop = make(
        "button",
        {
          type: "button",
          class: `stop ${state.stage === stage ? "chosen" : ""}`,
          "aria-pressed": String(state.stage === stage),
          onclick: () => go({ stage }),
        },
        make("span", { class: "thumb" }, picture),
        make("span", {}, make("strong", {}, title), make("small", {}, about)),
      );
      return [BETWEEN[stage] && make("span", { class: "then", "aria-hidden": true }, BETWEEN[stage]), stop];
    }),
  );
  return make("div", { class: "road" }, stops);
}

async function chosenStage(context) {
  const { state, run } = context;
  const [rows, columns] = sidesOfAttention(state);
  const { stage } = state;
  const squares = ["scores", "mask", "weights"].includes(stage);
  const onpick =
    stage === "mask" && !saved
      ? (row, column) => toggle(stageName(state), { kind: "scale", value: 0, at: { query: [row], key: [column] } })
      : undefined;
  return tensorMatrix(context, stageName(state), {
    index: stage === "out" ? [] : [headOf(stage, state, run)],
    down: stage === "keys" || stage === "values" ? columns : rows,
    across: squares ? columns : "channel",
    palette: STAGES[stage].palette,
    onpick,
  });
}

const MATRICES = { queries: "query", keys: "key", values: "value", out: "out" };

// What can be changed at this stage.
function editing(state, run) {
  const name = partName(state);
  const buttons = [
    switchButton(state, `${name}.head_outputs`, { head: [state.head] }, `head ${state.head}`),
    switchButton(state, name, {}, "the whole attention"),
  ];
  const hint =
    state.stage === "mask" && make("span", { class: "note" }, "Click a cell to forbid that look, in all heads.");
  const matrixName = MATRICES[state.stage] && `${name}.${MATRICES[state.stage]}.weight`;
  return [make("div", { class: "row" }, buttons, hint), matrixName && rowEditor(matrixName, run.matrices[matrixName])];
}
