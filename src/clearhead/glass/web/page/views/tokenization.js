// From characters to tokens: byte-pair encoding, merge by merge.

import { make, shown } from "../dom.js";
import { ask } from "../data.js";
import { token } from "../tokens.js";

export const tokenization = {
  title: "Tokenization",
  short: "From characters to tokens, merge by merge",
  lead: "A model reads numbers. The text is cut into words, a word into its bytes; then neighbours are merged, the pair that training met most often first, until no known pair is left.",
  whole: true,
  fits: () => true,
  async draw({ trace, run, runNumber }) {
    const parts = [];
    for (const side of Object.keys(trace.tokens)) {
      const text = side === "target" && run.family === "encoder-decoder" ? trace.target : trace.text;
      parts.push(await drawSide(trace, side, await ask("merges", { run: runNumber, side, text })));
    }
    return parts;
  },
};

function drawSide(trace, side, { words }) {
  const tokens = make(
    "div",
    { class: "row tight" },
    trace.tokens[side].map(({ id }, index) =>
      make("span", { class: "row tight" }, token(trace, side, index), make("small", {}, id)),
    ),
  );
  const title = side === "source" ? "What is read, with the ids that the model gets" : "What is written, with its ids";
  return make(
    "section",
    { class: "card" },
    make("h2", {}, title),
    tokens,
    words.length
      ? make("div", { class: "columns" }, words.map(drawWord))
      : make("p", { class: "note" }, "This tokenizer has no byte-pair merges to replay."),
  );
}

function drawWord(steps) {
  const lines = steps.map((pieces, at) => {
    const before = new Set(at ? steps[at - 1] : pieces);
    return make(
      "div",
      { class: "line" },
      pieces.map((piece) => make("span", { class: at && !before.has(piece) ? "new" : "" }, shown(piece))),
    );
  });
  return make("div", { class: "merge" }, make("small", {}, `${steps.length - 1} merges`), lines);
}
