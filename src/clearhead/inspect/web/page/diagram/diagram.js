// The living diagram: the tokens at the bottom, the stacks with the tensors of this text in their boxes, the output at the
// top. It is drawn again when the width of the page changes.

import { make, word } from "../dom.js";
import { reach } from "../colour.js";
import { ask } from "../data.js";
import { lastSide, pickedToken } from "../show.js";
import { token } from "../tokens.js";
import { drawBox } from "./boxes.js";
import { layOut } from "./layout.js";
import { drawOutputs } from "./outputs.js";
import { allOpen, sentenceAbout } from "./parts.js";
import { drawWires } from "./wires.js";

const LANES = 24; // as in diagram.py
const STEP = 8; // the first lane is a multiple of it, so that requests can be answered from the cache

// The position whose output is shown: a chosen token, a masked one; at first the second token of a translation, because the
// first has nothing before it, and the last token of a text that is continued.
export function firstPosition(context) {
  const { state, trace, run } = context;
  const side = lastSide(trace);
  const translates = run.family === "encoder-decoder" && state.token < 0;
  return translates ? Math.min(1, trace.tokens[side].length - 1) : pickedToken(context, side);
}

function firstLane(position, count) {
  if (count <= LANES) return 0;
  return Math.max(0, Math.min(Math.ceil((position + 1 - LANES) / STEP) * STEP, count - LANES));
}

export class Diagram {
  // texts: the element beside the stacks. on: {choose(position), say(text)}.
  constructor(context, texts, on) {
    Object.assign(this, { context, texts, on, side: lastSide(context.trace) });
    this.element = make("section", { class: "diagram", "aria-label": "The model with this text in it" });
    this.count = context.trace.tokens[this.side].length;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
    this.observer.observe(document.getElementById("learn")); // it appears later, and takes space
  }

  // Fetch what the boxes show around a position.
  async load(position) {
    const { trace, run, state } = this.context;
    const layer = allOpen(run) ? "" : String(state.layer);
    const first = String(firstLane(position, this.count));
    const before = this.found;
    this.found = await ask("diagram", { trace: trace.id, layer, first });
    trace.drawnFrom = this.found.first;
    this.position = position;
    if (this.layout && this.found !== before) this.draw(); // other tokens have the lanes now
  }

  // The space that is left between the top of the diagram and the bar at the foot of the page.
  space() {
    const top = this.element.getBoundingClientRect().top + scrollY;
    const foot = document.getElementById("learn");
    return innerHeight - top - (foot.hidden ? 0 : foot.offsetHeight) - 26;
  }

  resize() {
    const width = this.element.clientWidth;
    const space = this.space();
    if (this.layout && !this.element.isConnected) this.observer.disconnect();
    if (width < 240 || (width === this.width && Math.abs(space - this.height) < 4)) return;
    Object.assign(this, { width, height: space });
    this.draw();
  }

  draw() {
    const { trace, run, state } = this.context;
    const { width } = this;
    const words = Object.fromEntries(Object.keys(trace.tokens).map((side) => [side, this.words(side)]));
    const narrow = width < 700;
    this.layout = layOut(run, state.layer, words, { width, height: this.height, narrow });
    const { stacks, head, outputs, total } = this.layout;
    const inner = Object.entries(this.found.boxes).filter(([name]) => name.endsWith(".inner"));
    const scales = { feed_forward: reach(inner.flatMap(([, { data }]) => data), "signed") };
    for (const stack of stacks) stack.scales = scales;
    const boxes = stacks.flatMap((stack) => stack.boxes.map((box) => this.box(box, stack)));
    this.outputs = make("div", { class: "outputs", "aria-live": "polite", style: place(outputs) });
    this.band = make("div", { class: `band ${this.side}` });
    this.element.style.height = narrow ? "" : `${total}px`;
    const canvas = make(
      "div",
      { class: "canvas", style: { height: `${total}px` } },
      this.band,
      drawWires(this.layout, this.found.first),
      boxes,
      this.headBox(head),
      stacks.map((stack) => stackName(stack, this.found.first[stack.side], trace.tokens[stack.side].length)),
      stacks.flatMap((stack) => this.tokens(stack)),
      this.outputs,
    );
    this.element.classList.toggle("narrow", narrow);
    this.texts.style.cssText = "";
    if (!narrow) Object.entries(textPlace(this.layout)).map(([key, value]) => this.texts.style.setProperty(key, value));
    this.element.replaceChildren(this.texts, canvas);
    this.show(this.position);
  }

  box(box, stack) {
    const found = this.found.boxes[box.tensor];
    const button = drawBox({ box, stack, found, context: this.context, zoom: zoomFrom });
    this.describe(button, box.kind);
    return button;
  }

  describe(button, kind) {
    const sentence = sentenceAbout(kind, this.context.run);
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => this.on.say(sentence, true));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => this.on.say("", true));
  }

  headBox(head) {
    const stack = { ...this.layout.stacks.at(-1), skip: 0, gutter: 0, left: false };
    const button = drawBox({ box: head, stack, context: this.context, zoom: zoomFrom });
    this.describe(button, "head");
    return button;
  }

  // The tokens of a side that have a lane.
  words(side) {
    const start = this.found.first[side];
    return this.context.trace.tokens[side].slice(start, start + LANES).map(({ piece }) => word(piece));
  }

  tokens(stack) {
    const { trace } = this.context;
    const start = this.found.first[stack.side];
    const words = this.words(stack.side);
    return Array.from({ length: stack.count }, (_, i) => {
      const chooses = stack.side === this.side && this.context.run.head === "vocabulary";
      const chip = token(trace, stack.side, start + i, {
        class: stack.tilted ? "lane-token tilted" : "lane-token",
        style: { left: `${stack.lane(i)}px`, top: `${stack.tokensY}px`, "--lane": `${stack.laneWidth}px` },
        onclick: chooses && (() => this.on.choose(start + i)),
      });
      chip.textContent = words[i];
      chip.dataset.lane = i;
      chip.classList.toggle("crowded", stack.laneWidth < 13 && i % 2 === 1); // every second one can be read
      return chip;
    });
  }

  // Show the output at a position; `only` hides the tokens after it, which are not written yet.
  show(position, only = false) {
    this.position = position;
    if (!this.layout) return;
    const stack = this.layout.stacks.at(-1);
    const lane = position - this.found.first[this.side];
    const whole = this.context.run.head !== "vocabulary";
    this.outputs.replaceChildren(...drawOutputs(this.context, this.found, position));
    const { head } = this.layout;
    const bottom = stack.tokensY + 28;
    this.band.hidden = whole;
    Object.assign(this.band.style, {
      left: `${stack.lane(lane) - stack.laneWidth / 2}px`,
      width: `${stack.laneWidth}px`,
      top: `${head.y}px`,
      height: `${bottom - head.y}px`,
    });
    for (const part of this.element.querySelectorAll(`.${this.side}:is(.fibre, .lane, .lane-token)`)) {
      part.classList.toggle("picked", !whole && Number(part.dataset.lane) === lane);
      part.classList.toggle("dim", !whole && Number(part.dataset.lane) !== lane);
      part.classList.toggle("unread", only && Number(part.dataset.lane) > lane);
    }
    const hidden = only ? stack.lanes * (1 - (lane + 1) / stack.count) : 0;
    this.element.style.setProperty("--unread", `${hidden}px`);
  }
}

// Which stack it is; of a long text, also which of its tokens have a lane.
function stackName({ stack, side, left, x, lanes, gutter, skip, tokensY, count }, first, all) {
  const style = { left: `${left ? 0 : x + lanes + skip + 4}px`, width: `${gutter - 4}px`, top: `${tokensY}px` };
  const shown = count < all && make("small", {}, `tokens ${first + 1} to ${first + count} of ${all}`);
  return make("h3", { class: `stack-name ${side} ${left ? "left" : ""}`, style }, stack.name, shown);
}

function place({ x, y, width, height }) {
  return { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
}

// The text is above the encoder, which is shorter than the decoder, or at the left of a single stack.
function textPlace({ stacks, text, total }) {
  const [first] = stacks;
  if (stacks.length === 1) return { left: "0", top: "0", width: `${text - 28}px`, "max-height": `${total}px` };
  return { left: "0", top: "0", width: `${first.x + first.lanes}px`, height: `${first.top - 16}px` };
}

let zoomed = null;

function zoomFrom(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  zoomed = [left + width / 2, top + height / 2];
}

// Let a view grow out of the box that was clicked.
export function growFromBox(element, motion) {
  const from = zoomed;
  zoomed = null;
  if (!from || !motion) return;
  const { left, top } = element.getBoundingClientRect();
  element.style.transformOrigin = `${from[0] - left}px ${from[1] - top}px`;
  element.animate([{ transform: "scale(.82)", opacity: 0.2 }, { transform: "none", opacity: 1 }], {
    duration: 240,
    easing: "cubic-bezier(.2,.8,.2,1)",
  });
}
