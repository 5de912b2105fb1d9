// The first screen: the living diagram of the model with one text in it, and links to all other views.

import { later, make, percent } from "../dom.js";
import { ask, saved } from "../data.js";
import { go, keep } from "../state.js";
import { VIEWS, viewTitle } from "../views.js";
import { startTour } from "../tour.js";
import { Diagram, firstPosition } from "../diagram/diagram.js";
import { Player } from "../diagram/play.js";
import { reading } from "../diagram/reading.js";

export const overview = {
  title: "Overview",
  whole: true,
  ownHeading: true,
  fits: () => true,
  async draw(context) {
    const { run, state } = context;
    const position = firstPosition(context);
    const text = reading(context);
    const said = make("p", { class: "said", "aria-live": "polite" }, HINT);
    let spoken = HINT;
    const say = (words, passing) => {
      if (!passing) spoken = words;
      said.textContent = words || spoken;
    };
    const choose = (token) => {
      player.stop();
      diagram.show(token);
      keep({ token });
    };
    const buttons = make("div", { class: "controls" });
    const texts = make(
      "div",
      { class: "texts" },
      make("h1", {}, overview.title),
      text.element,
      context.trace.before && run.family === "encoder-decoder" && later(ownOutput(context.trace), (found) => found),
      buttons,
      said,
      !saved && !state.beside && examples(run, state),
    );
    const diagram = new Diagram(context, texts, { choose, say });
    const player = new Player(diagram, { say, written: text.show, ended: () => drawControls() });
    const drawControls = () => buttons.replaceChildren(...controls(context, { diagram, player, text, say, drawControls }));
    await diagram.load(position);
    drawControls();
    if (continued) requestAnimationFrame(() => buttons.querySelector(".play").click());
    continued = false;
    return [diagram.element, state.beside === "run" && facts(run)].filter(Boolean);
  },
  once: ({ run, state }) => [links(run), state.beside !== "run" && facts(run)].filter(Boolean),
};

// A model that is changed, or not yet trained, reads the finished one's target; what it would write itself is below it.
async function ownOutput(trace) {
  const { writes, ended } = await ask("effect", { trace: trace.id });
  return make("p", { class: "note" }, "On its own, it writes now: ", make("q", { class: "sentence-out" }, ended ? writes : `${writes} …`));
}

const WRITES = 16; // tokens by which a language model continues a text
let continued = false; // the model has just continued the text, which is now played

const HINT = "Tokens enter at the bottom and flow upward, each in its own lane. Click a box to look inside.";

function controls(context, { diagram, player, text, say, drawControls }) {
  const stop = () => {
    player.stop();
    text.show(Infinity);
    diagram.show(diagram.position);
    say(HINT);
    drawControls();
  };
  const play = () => {
    if (context.run.family === "decoder-only" && !context.trace.written && !saved) {
      continued = true;
      go({ write: WRITES, token: -1 });
      return;
    }
    player.play(text.start);
    drawControls();
  };
  const title = player.playing ? "❚❚ Stop" : "▶ Play";
  const help = player.playing ? "Stop" : "Play: see how it is computed, step by step";
  return [
    make(
      "button",
      { type: "button", class: "strong play", "aria-label": help, onclick: player.playing ? stop : play },
      title,
    ),
    make("small", {}, text.what),
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

function examples(run, state) {
  const others = run.examples.filter((text) => text !== state.text);
  if (!others.length) return null;
  const buttons = others.slice(0, run.stacks.length === 2 ? 2 : 3).map((text) =>
    make(
      "button",
      { type: "button", title: text, onclick: () => go({ text, target: "", token: -1, write: 0 }) },
      text.length > 48 ? `${text.slice(0, 47)}…` : text,
    ),
  );
  return make("div", { class: "examples" }, make("h3", {}, "Other texts"), buttons);
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
        make("strong", {}, viewTitle(view, run)),
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
    Width: `${run.d_model.toLocaleString("en")} channels, ${run.d_ff.toLocaleString("en")} inside the feed-forward`,
    Heads:
      run.kv_heads === run.heads
        ? `${run.heads}, ${run.head_size} channels each`
        : `${run.heads}, ${run.head_size} channels each; they share ${run.kv_heads} heads of keys and values`,
    Norm: `${run.norm === "rms" ? "RMSNorm" : "LayerNorm"}, ${run.norm_order === "pre" ? "before each sublayer" : "after each addition (the paper)"}`,
    Positions: run.position,
    Numbers: run.arithmetic.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part)),
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
