// The start of the page: the text, the output of the model, and links to all other views.

import { later, make, percent, shown } from "../dom.js";
import { ask, saved } from "../data.js";
import { go } from "../state.js";
import { token } from "../tokens.js";
import { VIEWS } from "../views.js";
import { startTour } from "../tour.js";

export const overview = {
  title: "Overview",
  lead: "One text on its way through your own model. All numbers are those that the model computes with.",
  whole: true,
  writes: true,
  fits: () => true,
  draw: ({ trace, run, state }) => [outcome(trace, run), state.beside === "run" && facts(run)].filter(Boolean),
  once: ({ run, state }) =>
    [!saved && examples(run, state), links(run), state.beside !== "run" && facts(run)].filter(Boolean),
};

function outcome(trace, run) {
  const read = make(
    "div",
    { class: "row tight" },
    Object.keys(trace.tokens)
      .slice(0, 1)
      .flatMap((side) => chips(trace, side)),
  );
  return make("section", { class: "card" }, make("h3", {}, "Input"), read, said(trace, run));
}

const chips = (trace, side) => trace.tokens[side].slice(0, 200).map((_, index) => token(trace, side, index));

function said(trace, run) {
  if (trace.classes) return [make("h3", {}, "Classes"), classBars(trace.classes)];
  if (run.family === "encoder-decoder") {
    const output = (text) => make("p", { class: "sentence-out" }, text);
    return [
      make("h3", {}, "Output"),
      trace.before
        ? later(ask("effect", { trace: trace.id }), ({ writes, ended }) => output(ended ? writes : `${writes} …`))
        : output(trace.target),
      !trace.before && make("div", { class: "row tight" }, chips(trace, "target")),
    ];
  }
  if (!trace.guesses)
    return [
      make("h3", {}, "Output"),
      make("p", {}, `a vector of ${run.d_model} numbers that represents the text.`),
    ];
  if (run.mask) return [make("h3", {}, "Predictions for masked tokens"), guesses(trace, run)];
  const last = trace.guesses.at(-1);
  return [
    make("h3", {}, "Most likely next token"),
    make("p", { class: "sentence-out" }, `${shown(last.piece)}  ${percent(last.probability)}`),
  ];
}

export function classBars(classes) {
  return make(
    "div",
    { class: "bars" },
    classes.map(([label, probability]) =>
      make(
        "div",
        { class: "bar" },
        make("span", {}, label),
        make("i", { style: { "--part": probability } }),
        make("output", {}, percent(probability)),
      ),
    ),
  );
}

// The predictions for masked tokens.
function guesses(trace, run) {
  const hidden = trace.tokens.source.flatMap(({ piece, special }, index) =>
    special && piece === run.mask ? [index] : [],
  );
  if (!hidden.length) return make("p", {}, `Write ${run.mask} in place of a word to have it predicted.`);
  return make(
    "div",
    { class: "row" },
    hidden.map((index) => {
      const { piece, probability } = trace.guesses[index];
      return make(
        "span",
        {},
        token(trace, "source", index),
        " → ",
        make("strong", {}, shown(piece)),
        ` ${percent(probability)}`,
      );
    }),
  );
}

function examples(run, state) {
  const others = run.examples.filter((text) => text !== state.text);
  if (!others.length) return null;
  const buttons = others.map((text) =>
    make(
      "button",
      { type: "button", onclick: () => go({ text, target: "", token: -1 }) },
      text.length > 70 ? `${text.slice(0, 69)}…` : text,
    ),
  );
  return make("section", { class: "card" }, make("h3", {}, "Other texts"), make("div", { class: "row" }, buttons));
}

function links(run) {
  const views = Object.entries(VIEWS).filter(([name, view]) => name !== "overview" && view.fits(run));
  const tour = make(
    "button",
    { type: "button", class: "strong", onclick: () => startTour(run) },
    make("strong", {}, "Take the tour"),
    make("span", {}, "From the text to the output, step by step"),
  );
  return make(
    "div",
    { class: "links" },
    tour,
    views.map(([name, view]) =>
      make(
        "button",
        { type: "button", onclick: () => go({ view: name, ...view.start?.(run) }) },
        make("strong", {}, view.title),
        make("small", {}, view.short),
      ),
    ),
  );
}

function facts(run) {
  const rows = {
    Family: run.family,
    Parameters: run.parameters.toLocaleString("en"),
    Blocks: run.stacks.map(({ name, layers }) => `${layers} in the ${name}`).join(", "),
    Width: `${run.d_model} channels, ${run.d_ff} inside the feed-forward`,
    Heads:
      run.kv_heads === run.heads
        ? `${run.heads}, ${run.head_size} channels each`
        : `${run.heads} that share ${run.kv_heads} of keys and values`,
    Norm: `${run.norm === "rms" ? "RMSNorm" : "LayerNorm"}, ${run.norm_order === "pre" ? "before each sublayer" : "after each addition (the paper)"}`,
    Positions: run.position,
    Vocabulary: `${run.vocab.toLocaleString("en")} tokens`,
  };
  const list = Object.entries(rows).map(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]);
  return make(
    "section",
    { class: "card" },
    make("h2", {}, run.about || run.name),
    make("dl", { class: "facts" }, list),
  );
}
