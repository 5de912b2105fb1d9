// What the words mean.

import { make } from "./dom.js";

const WORDS = {
  Token: "A piece of text that has a number: a word, a part of one, or a sign.",
  Vocabulary: "All tokens that a model knows.",
  Embedding: "The vector that stands for a token; a row of a learned table.",
  "Positional encoding": "A pattern that tells the model where a token stands.",
  "Residual stream":
    "One vector for each token, from the embedding to the output; every sublayer reads it and adds to it.",
  "Query, key, value": "Three vectors that attention makes of each token: what it asks, what it offers, what it says.",
  Score: "The dot product of a query and a key, divided by the square root of their length.",
  Mask: "Who may look at whom. In a decoder nobody sees what comes later.",
  Softmax: "Makes probabilities of numbers: e to the power of each, divided by their sum.",
  "Attention weight": "How much of a token's value is taken over; in each row they add up to 1.",
  Head: "One of several attentions side by side, each with its own queries, keys and values.",
  "Self-attention": "Tokens look at tokens of the same sequence.",
  "Cross-attention": "The tokens that are written (queries) look at the tokens that were read (keys and values).",
  "Feed-forward": "Two matrices with a bend between them; the same for every token, each on its own.",
  "Layer norm": "Brings each token's vector to mean 0 and deviation 1, then applies a learned gain and bias.",
  Logit: "A number for each word; the higher, the likelier it comes next. Softmax makes probabilities of them.",
  Temperature: "Logits are divided by it before softmax: below 1 the choice is surer, above 1 bolder.",
  "Top-k, top-p": "Choose only among the k likeliest words; or among the fewest whose probabilities reach p.",
  Beam: "Several hypotheses that are written at once; the best complete one wins.",
  "Logit lens": "What the model would say if it stopped after an earlier layer.",
  Snapshot: "The weights as they were at one step of training.",
};

const KEYS =
  "Keys: [ and ] change the head, { and } the block, arrows walk through a matrix, + and − zoom, t starts the tour, ? opens this.";

export function openGlossary() {
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
      Object.entries(WORDS).map(([word, meaning]) => [make("dt", {}, word), make("dd", {}, meaning)]),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
