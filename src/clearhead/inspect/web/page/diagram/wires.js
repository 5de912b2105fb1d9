// The lines of the diagram: the lane of each token, the residual lines around the sublayers, and the way from the encoder
// into every cross-attention.

import { drawn } from "../dom.js";
import { GAP } from "./layout.js";

export function drawWires(layout, first) {
  const { width, total, stacks, head } = layout;
  return drawn(
    "svg",
    { class: "wires", viewBox: `0 0 ${width} ${total}`, width, height: total, "aria-hidden": true },
    stacks.map((stack) => blockFrames(stack)),
    stacks.map((stack) => lanes(stack, stack.last ? head : null, first)),
    stacks.map((stack) => stack.boxes.map((box, i) => residual(stack, box, i))),
    stacks.length === 2 && memory(layout),
  );
}

// A frame around the parts of each block that is open, with its number.
function blockFrames(stack) {
  const layers = new Map();
  for (const box of stack.boxes.filter(({ kind, where }) => kind !== "closed" && "layer" in where)) {
    layers.set(box.where.layer, [...(layers.get(box.where.layer) ?? []), box]);
  }
  const x = stack.left ? stack.x - stack.skip : stack.x - 5;
  return [...layers].map(([layer, boxes]) => {
    const top = boxes.at(-1).y - 3;
    const bottom = boxes[0].y + boxes[0].height + 3;
    const inner = stack.left ? stack.x + stack.lanes + 16 : stack.x - 9;
    const turned = `translate(${inner} ${top + 4}) rotate(-90)`;
    return [
      drawn("rect", { class: "block-frame", x, y: top, width: stack.lanes + stack.skip + 5, height: bottom - top, rx: 9 }),
      stack.narrow ? null : drawn("text", { class: "quiet", transform: turned, "text-anchor": "end" }, `Block ${layer}`),
    ];
  });
}

function lanes(stack, head, first) {
  const top = head ? head.y + head.height : stack.top + GAP;
  return Array.from({ length: stack.count }, (_, i) =>
    drawn("line", {
      class: `lane ${stack.side}`,
      x1: stack.lane(i),
      x2: stack.lane(i),
      y1: stack.tokensY,
      y2: top,
      data: { token: `${stack.side}:${first[stack.side] + i}`, lane: i },
    }),
  );
}

// The residual line: it leaves the stream below the parts that it goes around, and comes back at the addition.
function residual(stack, box, i) {
  if (box.kind !== "add") return null;
  const below = stack.boxes[i - box.over];
  const edge = stack.left ? stack.x : stack.x + stack.lanes;
  const out = (stack.left ? -1 : 1) * (stack.skip - 6);
  const start = below.y + below.height + 2.5;
  const end = box.y + box.height / 2;
  const turn = Math.sign(out) * 5;
  const outermost = stack.lane(stack.left ? 0 : stack.count - 1);
  const plus = edge + Math.sign(out) * 2;
  const path = `M${outermost} ${start}H${edge + out - turn}q${turn} 0 ${turn} -5V${end + 5}q0 -5 ${-turn} -5H${plus}`;
  return [
    drawn("path", { class: `residual ${stack.side}`, d: path }),
    drawn("circle", { class: "plus", cx: plus, cy: end, r: 5 }),
    drawn("path", { class: "plus-sign", d: `M${plus - 2.8} ${end}h5.6M${plus} ${end - 2.8}v5.6` }),
  ];
}

// The encoder's output, into the lower edge of every cross-attention that is drawn.
function memory({ stacks: [encoder, decoder], narrow }) {
  const ends = decoder.boxes.filter(({ kind }) => kind === "cross_attention").map(({ y, height }) => y + height - 8);
  if (!ends.length) return null;
  const top = encoder.top + GAP / 2;
  const bus = narrow ? decoder.x - 9 : (encoder.x + encoder.lanes + decoder.x) / 2;
  const start = narrow ? encoder.lane(0) : encoder.lane(encoder.count - 1);
  const line = `M${start} ${top}H${bus}`;
  return [
    drawn("path", { class: "memory", d: `M${encoder.lane(0)} ${top}H${encoder.lane(encoder.count - 1)}` }),
    drawn("path", { class: "memory", d: line }),
    ends.map((y) => [
      drawn("path", { class: "memory", d: `M${bus} ${top}V${y}H${decoder.x - 1}` }),
      drawn("path", { class: "memory-head", d: `M${decoder.x - 6} ${y - 4}l6 4l-6 4z` }),
    ]),
  ];
}
