// From characters to tokens: byte-pair encoding, merge by merge.

import { make, shown } from "../dom.js";
import { ask } from "../data.js";
import { TITLES, token } from "../tokens.js";

export const tokenization = {
  title: "Tokenization",
  short: "From characters to tokens, merge by merge",
  lead: "A model reads ids. Each stands for a token of its vocabulary: a word, a part of a word, or a punctuation mark.",
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

const MERGING =
  "The text is split into words and each word into bytes; then neighbouring pieces are merged, the pair that was most frequent in training first, until no known pair is left.";

function drawSide(trace, side, { words }) {
  const tokens = make(
    "div",
    { class: "row tight" },
    trace.tokens[side].map(({ id }, index) =>
      make("span", { class: "row tight" }, token(trace, side, index), make("small", {}, id)),
    ),
  );
  const title = `${trace.tokens.source && trace.tokens.target ? TITLES[side] : "Tokens"}, with ids`;
  return make(
    "section",
    { class: "card" },
    make("h2", {}, title),
    tokens,
    words.length
      ? [make("p", { class: "note" }, MERGING), make("div", { class: "columns" }, words.map(drawWord))]
      : make("p", { class: "note" }, "This tokenizer has no byte-pair merges to replay."),
  );
}

function counted(merges) {
  return merges === 1 ? "1 merge" : `${merges} merges`;
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
  return make("div", { class: "merge" }, make("small", {}, counted(steps.length - 1)), lines);
}
