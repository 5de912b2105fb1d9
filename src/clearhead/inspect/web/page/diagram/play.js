// Writing word by word: the text says what comes, then a dot rises through the lane of the token that is read, the
// probabilities appear, and the chosen word moves down to its lane. With reduced motion only the text and the words change.

import { make, percent, still, word } from "../dom.js";
import { mostAttended } from "./boxes.js";
import { sentenceAbout } from "./parts.js";

const wait = (time) => new Promise((done) => setTimeout(done, time));

export class Player {
  // on: {say(text), written(position), ended()}
  constructor(diagram, on) {
    Object.assign(this, { diagram, on, playing: 0 });
  }

  stop() {
    this.playing = 0;
  }

  // Play from a position to the last one.
  async play(from) {
    const mine = (this.playing = Date.now());
    const goesOn = () => this.playing === mine && (this.diagram.element.isConnected || !this.diagram.layout);
    const { diagram, on } = this;
    while (!diagram.layout && goesOn()) await wait(20); // it is drawn when it is on the page
    if (!diagram.context.trace.tokens.target) {
      await this.readAll(goesOn);
      if (goesOn()) this.stop();
      return on.ended();
    }
    await diagram.load(from);
    diagram.show(from, true);
    on.written(from);
    if (diagram.layout.stacks.length === 2 && from === 0) await this.encoder(goesOn);
    for (let position = from; goesOn() && position < diagram.count; position += 1) {
      await this.step(position, goesOn, position - from);
    }
    if (goesOn()) this.stop();
    return on.ended();
  }

  // An encoder-only model: all tokens rise at once.
  async readAll(goesOn) {
    const [stack] = this.diagram.layout.stacks;
    const { outputs, context } = this.diagram;
    outputs.classList.add("empty");
    this.on.say("All tokens are read at once. In every block each of them takes from all others.");
    await wait(1200);
    if (goesOn()) await this.rise(stack, range(stack.count), 2200);
    outputs.classList.remove("empty");
    if (goesOn()) this.on.say(sentenceAbout("head", context.run));
  }

  async encoder(goesOn) {
    const [encoder] = this.diagram.layout.stacks;
    this.on.say("The encoder reads the source: all tokens at once, and only once.");
    await wait(1100);
    if (goesOn()) await this.rise(encoder, range(encoder.count), 1300);
    if (!goesOn()) return;
    this.on.say("Its output, a vector for each source token, goes to every cross-attention.");
    await wait(700);
    if (goesOn()) await this.flash(".memory", 900);
  }

  async step(position, goesOn, number) {
    const { diagram } = this;
    const stack = diagram.layout.stacks.at(-1);
    const quick = number > 1;
    if (position !== diagram.position) await diagram.load(position);
    diagram.show(position, true);
    diagram.outputs.classList.add("empty");
    this.on.say(this.reads(position));
    await wait(still.matches ? 900 : quick ? 500 : 1000);
    if (!goesOn()) return;
    const lane = position - diagram.found.first[diagram.side];
    await this.rise(stack, [lane], quick ? 700 : 1300);
    if (!goesOn()) return;
    diagram.outputs.classList.remove("empty");
    this.on.say(`${this.reads(position)} ${this.writes(position)}`);
    await wait(still.matches ? 900 : quick ? 500 : 800);
    if (!goesOn() || position + 1 >= diagram.count) return;
    await this.fall(stack, lane, quick ? 350 : 600);
    this.on.written(position + 1);
  }

  reads(position) {
    const { trace } = this.diagram.context;
    const read = `“${word(trace.tokens[this.diagram.side][position].piece)}” is read`;
    const box = this.diagram.layout.stacks.at(-1).boxes.findLast(({ kind }) => kind === "cross_attention");
    const found = box && this.diagram.found.boxes[box.tensor];
    if (!found) return `${read}.`;
    const pieces = trace.tokens.source.slice(trace.drawnFrom.source).map(({ piece }) => piece);
    const lane = position - this.diagram.found.first[this.diagram.side];
    return `${read}; the last cross-attention takes most from ${mostAttended(found, lane, pieces)}.`;
  }

  writes(position) {
    const { context, found, side } = this.diagram;
    const [best] = found.outputs[position - found.first[side]];
    const next = context.trace.tokens[side][position + 1]?.piece;
    if (next !== undefined && next !== best[0]) return `Likeliest: “${word(best[0])}”; given: “${word(next)}”.`;
    return `Likeliest: “${word(best[0])}”, ${percent(best[1])}.`;
  }

  // Dots rise through lanes of a stack; the boxes that they pass light up.
  async rise(stack, lanes, time) {
    if (still.matches) return;
    const canvas = this.diagram.element.querySelector(".canvas");
    const top = stack.last ? this.diagram.layout.head.y : stack.top;
    const dots = lanes.map((lane) =>
      make("i", { class: `drop ${stack.side}`, style: { left: `${stack.lane(lane)}px`, top: `${stack.tokensY}px` } }),
    );
    canvas.append(...dots);
    const way = top - stack.tokensY;
    const boxes = [...canvas.querySelectorAll(`.box.${stack.side}`)];
    for (const box of boxes) {
      const delay = (time * (stack.tokensY - Number(box.dataset.y))) / -way;
      const glow = [{ filter: "none" }, { filter: "brightness(1.12) saturate(1.7)", offset: 0.35 }, { filter: "none" }];
      box.querySelector(".inside").animate(glow, { duration: 420, delay: Math.max(0, delay - 90) });
    }
    await Promise.all(
      dots.map((dot) => dot.animate([{ translate: "0 0" }, { translate: `0 ${way}px` }], { duration: time }).finished),
    );
    for (const dot of dots) dot.remove();
  }

  async flash(selector, time) {
    if (still.matches) return;
    const lines = [...this.diagram.element.querySelectorAll(selector)];
    const move = [{ strokeDasharray: "6 5", strokeDashoffset: 44 }, { strokeDasharray: "6 5", strokeDashoffset: 0 }];
    await Promise.all(lines.map((line) => line.animate(move, { duration: time }).finished));
  }

  // The chosen word moves from the bars to the bottom of its lane.
  async fall(stack, lane, time) {
    if (still.matches || lane + 1 >= stack.count) return;
    const bar = this.diagram.element.querySelector(".chance.chosen .name");
    const canvas = this.diagram.element.querySelector(".canvas");
    if (!bar) return;
    const box = bar.getBoundingClientRect();
    const frame = canvas.getBoundingClientRect();
    const start = { x: box.left + box.width / 2 - frame.left, y: box.top - frame.top };
    const chip = make("span", { class: "token target falling" }, bar.textContent);
    canvas.append(chip);
    const at = ({ x, y }) => ({ translate: `calc(${x}px - 50%) ${y}px` });
    const end = { x: stack.lane(lane + 1), y: stack.tokensY };
    await chip.animate([at(start), at(end)], { duration: time, easing: "ease-in-out" }).finished;
    chip.remove();
  }
}

const range = (count) => Array.from({ length: count }, (_, i) => i);
