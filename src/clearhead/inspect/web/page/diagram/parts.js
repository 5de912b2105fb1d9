// The parts of a model in the order of computing, from the tokens upward, as the settings of the run say: which norms there
// are, before or after the additions, and where. The diagram and the map at the side are both drawn from this list.

import { titleOf, viewOf } from "../kinds.js";

// Blocks of a stack that are drawn in full, if it has no more than this; else only one of them.
export const MOST_OPEN = 3;

// Whether every block of the model is drawn in full.
export function allOpen(run) {
  return run.stacks.every(({ layers }) => layers <= MOST_OPEN);
}

// A stack: {below, blocks: [{layer, parts}], above}. A part has a kind, a title, the tensor in its box, and the state of the
// page that shows it; an addition also `over`, the number of parts that its residual line goes around.
export function partsOf(run, stack) {
  const blocks = Array.from({ length: stack.layers }, (_, layer) => ({
    layer,
    parts: stack.sublayers.flatMap((part) => sublayerParts(run, stack.name, layer, part)),
    output: `${stack.name}.blocks.${layer}.feed_forward_add_norm`,
  }));
  return { below: partsBelow(run, stack), blocks, above: partsAbove(run, stack) };
}

function partsBelow(run, { name, stream }) {
  const where = (view) => ({ view, stack: name });
  const added = ["sinusoidal", "learned"].includes(run.position);
  return [
    { kind: "embedding", title: "Embedding", tensor: `${name}.embedding`, where: where("embedding") },
    added && { kind: "position", title: "Position", tensor: `${name}.position`, where: where("position") },
    stream[0].endsWith("embedding_norm") && { kind: "norm", title: "Norm", tensor: stream[0], where: where("embedding") },
  ].filter(Boolean);
}

// With pre-norm: norm, sublayer, addition; with post-norm, as in the paper: sublayer, addition, norm.
function sublayerParts(run, stack, layer, part) {
  const name = `${stack}.blocks.${layer}.${part}`;
  const where = { stack, layer, part };
  const pre = run.norm_order === "pre";
  const norm = {
    kind: "norm",
    title: "Norm",
    tensor: pre ? `${name}_add_norm.norm` : `${name}_add_norm`,
    where: { view: "addnorm", ...where },
  };
  const tensor = part === "feed_forward" ? `${name}.inner` : `${name}.weights`;
  const title = part === "attention" ? "Self-attention" : titleOf(part);
  const sublayer = { kind: part, title, name, tensor, where: { view: viewOf(part), ...where } };
  const add = {
    kind: "add",
    title: "Add",
    tensor: pre ? `${name}_add_norm` : `${name}_add_norm.added`,
    where: { view: "addnorm", ...where },
    over: pre ? 2 : 1,
  };
  return pre ? [norm, sublayer, add] : [sublayer, add, norm];
}

function partsAbove(run, { name }) {
  if (run.norm_order !== "pre") return [];
  return [{ kind: "norm", title: "Final norm", tensor: `${name}.norm`, where: { view: "residual", stack: name } }];
}

// What computes the output from the last stack.
export function headPart(run) {
  const titles = { vocabulary: "Linear, softmax", classes: "Pool, linear, softmax", embedding: "Pool" };
  const view = run.head === "vocabulary" ? "next" : "answer";
  return { kind: "head", title: titles[run.head], where: { view } };
}

const SAYS = {
  embedding: "Embedding: each token's id selects a row of a table, its vector.",
  position: "Position: a vector for each place is added, so that the order of the tokens counts.",
  norm: "Norm: each token's vector is brought to the same scale.",
  attention: "Attention: each token takes from others; the thicker the line, the more.",
  cross_attention: "Cross-attention: each target token takes from the source.",
  feed_forward: "Feed-forward: two matrices with a nonlinearity between them, for each token alone.",
  add: "Add: what the sublayer computed is added to the residual stream.",
  closed: "A block of attention and feed-forward; click to open it.",
};

// What the head computes: in a decoder, and in a model that has an encoder alone.
const COMPARES =
  "The last vector is compared with the vector of every token; a softmax turns the products into probabilities.";
const POOLS = {
  vocabulary: "The last vector of each token gives probabilities for what could stand in its place.",
  classes: "The vectors of all tokens are pooled into one, which gives the probability of each class.",
  embedding: "The vectors of all tokens are pooled into one: texts of similar meaning have similar vectors.",
};

// A sentence about a part, for the line of text beside the diagram.
export function sentenceAbout(kind, run) {
  if (kind === "head") return run.family === "encoder-only" ? POOLS[run.head] : COMPARES;
  const rotary = kind === "attention" && run.position === "rotary";
  return rotary ? `${SAYS[kind]} Queries and keys are first rotated by their positions.` : SAYS[kind];
}
