// The stops of the tour, the encoder first. A stop has a title, a text, the state of the page that it is about, the element
// that it lights up, and for most a question whose answer is computed from this model.

import {
  activeNeurons,
  added,
  alignedToken,
  attendedToken,
  certainty,
  growing,
  milestone,
  mostImportant,
  nearestToken,
  shuffledPositions,
  specialToken,
  withoutCross,
} from "./questions.js";

const POSITIONS = {
  rotary:
    "Attention alone does not see the order of tokens. Here nothing is added to the vectors: queries and keys are rotated by angles that grow with the position, so that their products depend on the distance.",
  sinusoidal:
    "Attention alone does not see the order of tokens. So a vector that depends on the position only is added to each token's vector: sines and cosines of many frequencies.",
  learned:
    "Attention alone does not see the order of tokens. So a vector for each position, learned in training, is added to each token's vector.",
};

export function stopsOf({ run, trace }) {
  const both = run.family === "encoder-decoder";
  const stack = run.stacks[0].name;
  const last = run.stacks.at(-1);
  const end = { stack: last.name, layer: last.layers - 1 };
  const stops = [
    {
      title: "One text through the model",
      text: "Tokens enter at the bottom, flow upward through the blocks, and the output comes out on top. All numbers are computed by this model. The next stops follow the text, part by part.",
      where: { view: "overview", token: -1 },
      lights: "#stage .diagram",
    },
    {
      title: "Text becomes tokens",
      text: "The model reads ids, not letters. Frequent words are one token each, rare ones are split. Special tokens mark the beginning or the end.",
      where: { view: "tokenization" },
      lights: "#strips .strip",
      ask: specialToken,
    },
    {
      title: "A token becomes a vector",
      text: "Each id selects a row of a table. Training has moved tokens with similar uses near each other.",
      where: { view: "embedding", stack },
      lights: "#stage .near",
      ask: nearestToken(stack),
    },
    run.position !== "none" && {
      title: "The order of the tokens",
      text: POSITIONS[run.position],
      where: { view: "position", stack },
      lights: "#stage .own-positions",
      ask: run.head !== "embedding" && shuffledPositions(stack),
    },
    {
      title: "Queries and keys",
      text: "Each token computes a query (what it looks for), a key (what it is found by) and a value (what it passes on). The products of a query with all keys, after a softmax, are its attention weights: how much of each value it takes.",
      where: { view: "attention", stack, layer: 0, part: "attention", head: 0, stage: "weights" },
      lights: "#stage .chosen-stage .matrix",
      ask: attendedToken(stack),
    },
    {
      title: "Many heads",
      text: `Each block has several heads, with their own queries, keys and values. ${
        trace.quick
          ? "Under each head you see what it attends to, and how much the output depends on it."
          : "The button measures what each attends to, and how much the output depends on it."
      }`,
      where: { view: "heads" },
      lights: trace.quick ? "#stage .heads" : "#stage .measures",
      ask: mostImportant,
    },
    {
      title: "Add & norm",
      text: `What a sublayer computes is added to the token's vector; nothing is replaced. ${
        run.norm_order === "pre" ? "A sublayer reads a copy that a norm has brought to one scale." : "Then a norm keeps the vectors at one scale."
      }`,
      where: { view: "addnorm", stack, layer: 0, part: "attention" },
      lights: "#stage .sum",
      ask: added(stack),
    },
    {
      title: "Feed-forward",
      text: "Each token alone goes through a wide hidden layer and back. Its neurons are patterns: the better a vector matches one, the more that neuron adds.",
      where: { view: "feedforward", stack, layer: 0, part: "feed_forward", token: 1 },
      lights: "#stage .most-active",
      ask: activeNeurons(stack),
    },
    {
      title: "The residual stream",
      text: "Between the sublayers there is nothing but these vectors, one for each token. Every sublayer reads them and adds to them.",
      where: { view: "residual", stack, token: 1 },
      lights: "#stage .matrix",
      ask: growing(stack),
    },
    both && {
      title: "Cross-attention: from one language to the other",
      text: "While it writes, the decoder reads the encoder's vectors. Each row is a token that was read; the lines show which source tokens it takes from to write the next one.",
      where: { view: "alignment", ...end, part: "cross_attention", lines: "mean" },
      lights: "#stage .alignment",
      ask: alignedToken(last),
    },
    both && {
      title: "Switch it off",
      text: "The surest way to learn what a part does: take it away. We switch off the cross-attention of the last block.",
      where: { view: "next", token: -1 },
      lights: "#stage .next-words",
      ask: withoutCross(last),
    },
    run.head === "vocabulary" && {
      title: both ? "The next word" : "A token is predicted",
      text: "The last vector is compared with the vector of every token; a softmax turns the products into probabilities.",
      where: { view: "next", token: -1 },
      lights: "#stage .next-words",
      ask: certainty,
    },
    run.family !== "encoder-only" && {
      title: "Word by word",
      text: "The chosen token is read again, and the next one is predicted, until the end token comes. Play shows the candidates of each step.",
      where: { view: "decoding", shown: 1 },
      lights: "#stage .player",
    },
    run.head !== "vocabulary" && {
      title: "One output for the whole text",
      text: `The vectors of the tokens are pooled into one${run.head === "classes" ? ", and the probabilities of the classes are computed from it" : ": the output of this model"}.`,
      where: { view: "answer" },
      lights: "#stage .card",
    },
    run.snapshots.length > 0 && {
      title: "How it learned this",
      text: "The bar at the foot of the page goes back to the beginning of training. Every view shows the model at that step; yellow marks are milestones.",
      where: { view: both ? "alignment" : "heads", ...end, ...(both && { part: "cross_attention" }) },
      lights: "#learn",
      ask: milestone,
    },
  ];
  return stops.filter(Boolean);
}
