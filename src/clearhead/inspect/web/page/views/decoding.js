// Greedy decoding, token by token: the candidates of each step, and what the model attends to.

import { make, percent, shown, still } from "../dom.js";
import { ask, tensor } from "../data.js";
import { go, now } from "../state.js";
import { colours, css, ink } from "../colour.js";
import { meanOverHeads } from "../show.js";
import { token } from "../tokens.js";

let playing = 0;

export const decoding = {
  title: "Decoding",
  short: "Token by token, with play and step",
  lead: "The model writes one token, reads what it has written so far, and writes the next. At each step every token of the vocabulary has a probability; here the likeliest is chosen (greedy decoding).",
  whole: true,
  fits: (run) => run.family !== "encoder-only",
  async draw(context) {
    const { state, trace, run } = context;
    const { steps } = await ask("decode", { trace: trace.id });
    const at = Math.min(Math.max(state.shown, 1), steps.length);
    const same = steps.slice(0, at - 1).every(({ words }, i) => words[0] === trace.tokens.target[i + 1]?.piece);
    const attended = run.family === "encoder-decoder" && same ? await attendedSource(context, at - 1) : null;
    return [
      make("section", { class: "card" }, controls(at, steps.length), written(trace, run, steps, at)),
      attended,
      make("section", { class: "card" }, make("h2", {}, `Step ${at}: the candidates`), candidates(steps[at - 1])),
    ].filter(Boolean);
  },
};

function controls(at, length) {
  const move = (shown) => go({ shown: Math.min(length, Math.max(1, shown)) }, true);
  const play = () => {
    if (playing) return stop();
    playing = setInterval(
      () =>
        now().view === "decoding" && Math.max(1, now().shown) < length ? move(Math.max(1, now().shown) + 1) : stop(),
      still.matches ? 1600 : 800,
    );
    return move(at >= length ? 1 : at);
  };
  const slider = make("input", {
    type: "range",
    min: 1,
    max: length,
    value: at,
    "aria-label": "Tokens written",
    oninput: (event) => move(Number(event.target.value)),
  });
  return make(
    "div",
    { class: "row player" },
    make(
      "button",
      { type: "button", disabled: at <= 1, "aria-label": "One step back", onclick: () => move(at - 1) },
      "‹",
    ),
    make("button", { type: "button", class: "strong play", onclick: play }, playing ? "Pause" : "Play"),
    make(
      "button",
      { type: "button", disabled: at >= length, "aria-label": "One step forward", onclick: () => move(at + 1) },
      "›",
    ),
    slider,
    make("small", {}, `${at} of ${length}`),
  );
}

function stop() {
  clearInterval(playing);
  playing = 0;
  for (const button of document.querySelectorAll(".play")) button.textContent = "Play";
}

function written(trace, run, steps, at) {
  const before = run.family === "decoder-only" ? make("span", { class: "given" }, trace.text) : null;
  const words = steps
    .slice(0, at)
    .map(({ words: [word], probabilities: [probability] }, i) =>
      make(
        "span",
        {
          class: i === at - 1 ? "written fresh" : "written",
          style: { "--sure": probability },
          title: `${shown(word)} ${percent(probability)}`,
        },
        word,
      ),
    );
  return [
    make("p", { class: "sentence-out writing" }, before, words),
    make("p", { class: "note" }, "The stronger the line below a token, the surer the model was of it."),
  ];
}

function candidates({ words, probabilities }) {
  return make(
    "div",
    { class: "bars" },
    words.map((word, i) =>
      make(
        "div",
        { class: i ? "bar second" : "bar" },
        make("span", { class: "token" }, shown(word)),
        make("i", { style: { "--part": probabilities[i] } }),
        make("output", {}, percent(probabilities[i])),
      ),
    ),
  );
}

// What the model attends to in the source when it writes this token: the mean over all heads of the last block.
async function attendedSource({ trace, run }, row) {
  const { layers } = run.stacks.find(({ name }) => name === "decoder");
  const weights = await tensor(trace.id, `decoder.blocks.${layers - 1}.cross_attention.weights`);
  const { rows, columns, data } = meanOverHeads(weights);
  if (row >= rows) return null;
  const mean = data.slice(row * columns, (row + 1) * columns);
  const colour = colours("weights", Math.max(...mean));
  const chips = trace.tokens.source.map((_, index) => {
    const chip = token(trace, "source", index, { title: percent(mean[index]) });
    chip.style.background = css(colour(mean[index]));
    chip.style.color = ink(colour(mean[index]));
    return chip;
  });
  return make(
    "section",
    { class: "card" },
    make("h2", {}, "What it attends to in the source"),
    make("div", { class: "row tight" }, chips),
    make("p", { class: "note" }, `Mean over the ${run.heads} heads of the last block's cross-attention.`),
  );
}
