// What the words mean. Words for tensors are defined with their kinds, in the table that comes with each run.

import { make } from "./dom.js";

const WORDS = {
  Token: "A piece of text that has an id: a word, a part of a word, or a punctuation mark.",
  Vocabulary: "All tokens that a model knows.",
  Softmax: "Turns numbers into probabilities: the exponential of each, divided by the sum of all exponentials.",
  Head: "One of several attentions side by side, each with its own queries, keys and values.",
  Temperature:
    "Logits are divided by it before the softmax: below 1 sampling favours likely tokens more, above 1 it is more random.",
  "Top-k, top-p":
    "Sample only from the k likeliest tokens; or from the smallest set of likeliest tokens whose probabilities reach p.",
  "Beam search": "Several hypotheses are extended in parallel; the complete one with the best score wins.",
  "Logit lens": "What the model would predict if it stopped after an earlier layer.",
  Snapshot: "The parameters as they were at one step of training.",
};

const KEYS =
  "Keys: [ and ] change the head, { and } the block, arrows move through a matrix, + and − zoom, t starts the tour, ? opens this.";

export function openGlossary(runs) {
  const defined = runs.flatMap(({ kinds }) => kinds.flatMap(({ definition }) => (definition ? [definition] : [])));
  const words = Object.entries({ ...WORDS, ...Object.fromEntries(defined) }).sort(([a], [b]) => a.localeCompare(b));
  const dialog = make(
    "dialog",
    { "aria-label": "Glossary" },
    make(
      "div",
      { class: "row spread" },
      make("h1", {}, "Glossary"),
      make("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    ),
    make("p", { class: "note" }, KEYS),
    make(
      "dl",
      {},
      words.map(([word, meaning]) => [make("dt", {}, word), make("dd", {}, meaning)]),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
