// Where everything of the diagram is, in pixels. Data flows upward; every token has a lane through its stack.

import { allOpen, headPart, partsOf } from "./parts.js";

// Heights of the boxes: the least, and how they share what is left of the window.
const LEAST = { embedding: 18, position: 10, norm: 6, attention: 36, cross_attention: 48, feed_forward: 17, add: 7, closed: 15 };
const LEAST_NARROW = { ...LEAST, embedding: 32, position: 24, norm: 24, feed_forward: 32, add: 24, closed: 24 }; // for a finger
const SHARES = { attention: 3, cross_attention: 3, feed_forward: 1, embedding: 0.6 };
const MOST = { attention: 150, cross_attention: 130, feed_forward: 44, embedding: 34 };
export const GAP = 6;
const TOKENS = 28; // the row of tokens below a stack, and if they are tilted
const TILTED = 62;
const HEAD = 22;
const OUTPUTS = 112; // the bars at the top

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// All parts of a stack that get a box, from below: in deep stacks only one block is open.
function column(run, stack, layer) {
  const { below, blocks, above } = partsOf(run, stack);
  const opened = allOpen(run) ? () => true : (block) => block.layer === Math.min(layer, stack.layers - 1);
  const middle = blocks.flatMap((block) => (opened(block) ? block.parts : [closed(stack, block)]));
  return [...below, ...middle, ...above];
}

function closed(stack, { layer, output }) {
  return {
    kind: "closed",
    title: `Block ${layer}`,
    tensor: output,
    where: { view: "overview", stack: stack.name, layer },
  };
}

// The height of a column: the least heights, and `extra` for each share of the height that is left.
function heightOf(parts, extra = 0, least = LEAST) {
  return sum(parts.map((part) => boxHeight(part.kind, extra, least) + gapAbove(part)));
}

// Norms are close to the boxes above them.
function gapAbove({ kind }) {
  return kind === "norm" ? GAP - 2 : GAP;
}

function boxHeight(kind, extra, least) {
  const grown = least[kind] + extra * (SHARES[kind] ?? 0);
  return Math.min(MOST[kind] ?? least[kind], grown);
}

// What each share of height gets, so that the tallest column fills the window.
function extraFor(columns, height) {
  const tallest = Math.max(...columns.map((parts) => heightOf(parts)));
  const [parts] = columns.filter((each) => heightOf(each) === tallest);
  let extra = Math.max(0, (height - tallest) / Math.max(1, sum(parts.map(({ kind }) => SHARES[kind] ?? 0))));
  while (extra > 0 && heightOf(parts, extra) > height) extra -= 0.5;
  return extra;
}

// The whole diagram. words: {source, target}, the tokens of each side that get a lane; then {width, height, narrow}.
export function layOut(run, layer, words, { width, height, narrow }) {
  const columns = run.stacks.map((stack) => column(run, stack, layer));
  const gutter = narrow ? 94 : 114;
  const skip = 16;
  const two = run.stacks.length === 2;
  const between = 56;
  const text = two ? 0 : Math.min(330, width * 0.32);
  const lanes = narrow
    ? width - gutter - skip - (two ? 14 : 0)
    : two
      ? (width - 2 * (gutter + skip) - between) / 2
      : width - text - gutter - skip;
  const tilted = Object.values(words).some((all) => isTilted(all, lanes / all.length));
  const tokens = tilted ? TILTED : TOKENS;
  const least = narrow ? LEAST_NARROW : LEAST;
  const headHeight = narrow ? 32 : HEAD;
  const around = OUTPUTS + headHeight + tokens + 5 * GAP;
  const extra = narrow ? 4 : extraFor(columns, height - around);
  const tallest = Math.max(...columns.map((parts) => heightOf(parts, extra, least)));
  const heights = columns.map((parts) => heightOf(parts, extra, least) + tokens + GAP);
  const total = narrow ? sum(heights) + headHeight + OUTPUTS + 4 * GAP : tallest + around;
  const stacks = run.stacks.map((stack, i) => {
    const last = i === run.stacks.length - 1;
    const left = !narrow && two && i === 0; // the labels of the encoder are at its left
    const bottom = narrow && i === 1 ? total - heights[0] - 2 * GAP : total;
    const x = left ? gutter + skip : narrow ? (two ? 14 : 0) : two ? gutter + skip + lanes + between : text;
    const side = stack.name === "encoder" ? "source" : "target";
    const count = words[side].length;
    return placed({ stack, side, last, left, x, bottom, lanes, gutter, skip, extra, least, tokens, tilted, narrow, count }, columns[i]);
  });
  const top = stacks.at(-1);
  const head = { ...headPart(run), x: top.x, y: top.top - headHeight - GAP, width: lanes, height: headHeight };
  return { width, total, narrow, stacks, head, text, outputs: { x: top.x, y: 0, width: lanes, height: head.y - GAP } };
}

// Whether tokens are too long to be written side by side.
function isTilted(words, laneWidth) {
  return laneWidth < 6.3 * Math.min(9, Math.max(...words.map(({ length }) => length))) + 4;
}

// One stack: the boxes with their places, and where its lanes are.
function placed(frame, parts) {
  const { x, bottom, lanes, count, extra, least, tokens } = frame;
  let y = bottom - tokens - GAP;
  const boxes = parts.map((part) => {
    const height = boxHeight(part.kind, extra, least);
    y -= height;
    const box = { ...part, x, y, width: lanes, height };
    y -= gapAbove(part);
    return box;
  });
  const lane = (i) => x + ((i + 0.5) * lanes) / count;
  return { ...frame, boxes, lane, top: y, laneWidth: lanes / count, tokensY: bottom - tokens };
}
