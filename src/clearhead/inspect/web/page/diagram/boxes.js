// A box of the diagram: a button with the tensor inside it and its title beside it.

import { drawn, make, percent, word } from "../dom.js";
import { reach } from "../colour.js";
import { go } from "../state.js";
import { isOff } from "../changes.js";
import { pixels } from "../thumbnail.js";
import { meanOverHeads } from "../show.js";
import { curves } from "./curves.js";

const LEAST_LABELLED = 28; // pixels between source tokens, if they are to be written

// options: box (with its place), stack (placed), found (the tensor: {shape, data}), context, zoom(element).
export function drawBox({ box, stack, found, context, zoom }) {
  const { trace, state } = context;
  const isAttention = box.kind === "attention" || box.kind === "cross_attention";
  const inside = make("span", { class: "inside" });
  if (found && isAttention) inside.append(attentionPicture({ box, stack, found, trace }));
  else if (found) inside.append(vectors(box, stack, found));
  const button = make(
    "button",
    {
      type: "button",
      class: ["box", box.kind, stack.side, stack.left && "left", isSwitchedOff(box, context) && "off"]
        .filter(Boolean)
        .join(" "),
      "aria-label": labelOf(box),
      data: { kind: box.kind, y: box.y + box.height / 2 },
      style: placeOf(box, stack),
      onclick: (event) => {
        if (box.where.view !== state.view) zoom(event.currentTarget);
        go(box.where);
      },
    },
    inside,
    make(
      "span",
      { class: "label" },
      make("span", { class: "name" }, box.title),
      isAttention && found && box.height > 34 && headPictures(found, box, context),
    ),
  );
  return button;
}

// In a comparison, the model before the change has all its parts.
function isSwitchedOff({ name }, { trace, state }, kind = "", at = {}) {
  return Boolean(trace.before && name) && isOff(state.changes, `${name}${kind}`, at);
}

// The button covers the box and its title in the gutter; the residual line runs between them.
function placeOf({ x, y, width, height }, { left, gutter, skip }) {
  return {
    left: `${left ? x - gutter - skip : x}px`,
    top: `${y}px`,
    width: `${width + gutter + skip}px`,
    height: `${height}px`,
    "--lanes": `${width}px`,
    "--skip": `${skip}px`,
  };
}

function labelOf({ kind, title, where }) {
  const place = "layer" in where && kind !== "closed" ? `${where.stack}, block ${where.layer}` : (where.stack ?? "");
  const what = kind === "add" || (kind === "norm" && where.part) ? `${title} of ${where.part}` : title;
  return `${kind === "closed" ? "Open" : "Look into"} ${what.replaceAll("_", "-")}${place ? `: ${place}` : ""}`;
}

// One strip for each token, with the strongest channels of its vector.
function vectors(box, stack, { shape, data }) {
  const columns = shape.at(-1);
  const canvas = make("canvas", { "aria-hidden": true });
  const density = devicePixelRatio || 1;
  canvas.width = Math.round(box.width * density);
  canvas.height = Math.max(1, Math.round((box.height - 2) * density));
  const most = stack.scales[box.kind] ?? reach(data, "signed"); // feed-forwards have one scale, so that silent ones are pale
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  for (let token = 0; token < stack.count; token += 1) {
    const values = data.slice(token * columns, (token + 1) * columns);
    const strip = new OffscreenCanvas(columns, 1);
    strip.getContext("2d").putImageData(pixels({ rows: 1, columns, values }, "signed", most), 0, 0);
    const gap = Math.min(6, stack.laneWidth * 0.16) * density;
    const wide = stack.laneWidth * density;
    pen.drawImage(strip, token * wide + gap / 2, 0, wide - gap, canvas.height);
  }
  return canvas;
}

// Lines from the keys below to the queries above, as strong as the weights, averaged over the heads.
function attentionPicture({ box, stack, found, trace }) {
  const cross = box.kind === "cross_attention";
  const [, , keys] = found.shape;
  const from = cross ? (i) => ((i + 0.5) * box.width) / keys : (i) => stack.lane(i) - stack.x;
  const bottom = box.height - (cross ? 15 : 1);
  const picture = drawn(
    "svg",
    { viewBox: `0 0 ${box.width} ${box.height}`, preserveAspectRatio: "none", "aria-hidden": true },
    curves(meanOverHeads(found), { from, to: (i) => stack.lane(i) - stack.x, bottom, top: 1, side: stack.side }),
    cross && sourceRuler(trace, keys, box, from),
  );
  return picture;
}

// The source tokens at the lower edge of a cross-attention, where the encoder's output comes in.
function sourceRuler(trace, keys, box, from) {
  const space = box.width / keys;
  const letters = Math.floor(space / 6);
  return Array.from({ length: keys }, (_, i) => {
    const { piece } = trace.tokens.source[trace.drawnFrom.source + i];
    const text = word(piece);
    const words = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
    return space < LEAST_LABELLED
      ? drawn("circle", { cx: from(i), cy: box.height - 6, r: 2, class: "key" })
      : drawn("text", { x: from(i), y: box.height - 4, class: "key", "text-anchor": "middle" }, words);
  });
}

// The weights of each head, small.
function headPictures({ shape: [heads, rows, columns], data }, box, context) {
  const shownHeads = Math.min(heads, 12);
  const size = rows * columns;
  const columnsOf = shownHeads > 4 ? Math.ceil(shownHeads / 2) : shownHeads;
  const pictures = Array.from({ length: shownHeads }, (_, head) => {
    const off = isSwitchedOff(box, context, ".head_outputs", { head: [head] });
    const canvas = make("canvas", { width: columns, height: rows, title: `head ${head}`, class: off && "off" });
    const values = data.slice(head * size, (head + 1) * size);
    canvas.getContext("2d").putImageData(pixels({ rows, columns, values }, "weights", 1), 0, 0);
    return canvas;
  });
  return make(
    "span",
    { class: "head-pictures", "aria-hidden": true, style: { "--columns": columnsOf } },
    pictures,
  );
}

// "the most from “car” (62 %)": where one token's attention goes, in words.
export function mostAttended(found, query, pieces) {
  const { rows, columns, data } = meanOverHeads(found);
  if (query >= rows) return "";
  const row = data.slice(query * columns, (query + 1) * columns);
  const best = row.indexOf(Math.max(...row));
  return `“${word(pieces[best])}” (${percent(row[best])})`;
}
