// Watch it learn: a slider over the run's snapshots moves every view through training, with the loss curve behind it.

import { drawn, make, number, phone } from "./dom.js";
import { ask, saved } from "./data.js";
import { go } from "./state.js";

const WIDTH = 1000;
const HEIGHT = 46;
const PAUSE = 900; // milliseconds between two snapshots

let moving = false; // while the slider is dragged or played, it does not follow the address

export async function drawLearning(element, run, state, trace) {
  if (!run.snapshots.length || saved) return;
  element.hidden = false;
  const steps = run.snapshots;
  await (element.built ??= build(element, steps));
  const known = steps.indexOf(Number(state.snapshot));
  drawMilestones(element, steps, trace);
  if (!moving) show(element, steps, state.snapshot === "" || known < 0 ? steps.length : known);
}

// Steps are on a logarithmic axis, as the snapshots are: most changes happen early. From 0 to 1.
function share(step, last) {
  return 0.008 + (0.984 * Math.log1p(step)) / Math.log1p(last);
}

function across(step, last) {
  return WIDTH * share(step, last);
}

function upright(name, x, y1, y2) {
  return drawn("line", { class: name, x1: x, x2: x, y1, y2, "vector-effect": "non-scaling-stroke" });
}

async function build(element, steps) {
  const last = steps.at(-1);
  const { train, valid } = await ask("metrics", { run: 0 });
  const most = Math.max(...train.map(([, loss]) => loss), 1e-9);
  const y = (loss) => 4 + (HEIGHT - 12) * (1 - loss / most);
  const path = train
    .map(([step, loss], i) => `${i ? "L" : "M"}${across(step, last).toFixed(1)} ${y(loss).toFixed(1)}`)
    .join("");
  const picture = drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": true },
    drawn("path", { class: "curve thin", d: path, "vector-effect": "non-scaling-stroke" }),
    valid.map(([step, loss]) => upright("valid", across(step, last), y(loss) - 5, y(loss) + 5)),
    steps.map((step) => upright("tick", across(step, last), HEIGHT - 6, HEIGHT)),
    upright("now", 0, 0, HEIGHT),
  );
  const slider = make("input", {
    type: "range",
    min: 0,
    max: steps.length,
    step: 1,
    "aria-label": "Step of training",
    oninput: (event) => {
      pause(element);
      slide(element, steps, Number(event.target.value));
    },
  });
  const box = make("div", { class: "curve-box" }, slider, picture, axis(steps, most));
  picture.addEventListener("pointerdown", (event) => scrub(event, element, steps, picture));
  const play = make("button", { type: "button", class: "replay", onclick: () => replay(element, steps) }, PLAY);
  element.replaceChildren(play, box, make("output", {}));
  element.losses = new Map(train);
}

const PLAY = "▶ Watch it learn";

// What the axes count: the loss at the left, some of the steps below.
function axis(steps, most) {
  const last = steps.at(-1);
  const places = [];
  for (const step of [last, ...steps]) {
    const away = (other) => Math.abs(share(other, last) - share(step, last));
    if (places.every((other) => away(other) > (phone.matches ? 0.3 : 0.09))) places.push(step);
  }
  const names = places.map((step) =>
    make("span", { style: { left: `${100 * share(step, last)}%` } }, step === last ? `step ${step}` : step),
  );
  return make("div", { class: "axis-names", "aria-hidden": true }, make("b", {}, `loss ${number(most, 1)}`), names);
}

// From which step on the heads have their roles, and the model its answer, for this text: a mark for each.
async function drawMilestones(element, steps, trace) {
  const text = JSON.stringify(Object.values(trace.tokens).map((tokens) => tokens.map(({ id }) => id)));
  if (element.dataset.milestones === text) return;
  element.dataset.milestones = text;
  const { found } = await ask("milestones", { trace: trace.id }).catch(() => ({ found: [] }));
  if (element.dataset.milestones !== text) return;
  const together = Map.groupBy(found, ({ step }) => step);
  const marks = [...together].map(([step, all]) => {
    const words = `Step ${step}: ${all.map(({ what }) => what).join("; ")}`;
    const at = steps.indexOf(step);
    return make("button", {
      type: "button",
      class: "milestone",
      title: words,
      "aria-label": words,
      style: { left: `${100 * share(step, steps.at(-1))}%` },
      onclick: () => {
        pause(element);
        slide(element, steps, at);
      },
    });
  });
  element.milestones = new Map([...together].map(([step, all]) => [step, all.map(({ what }) => what).join("; ")]));
  element.querySelectorAll(".milestone").forEach((mark) => mark.remove());
  element.querySelector(".curve-box").append(...marks);
}

function show(element, steps, at) {
  const step = steps[Math.min(at, steps.length - 1)];
  const slider = element.querySelector("input");
  if (Number(slider.value) !== at) slider.value = at;
  const line = element.querySelector(".now");
  for (const name of ["x1", "x2"]) line.setAttribute(name, across(step, steps.at(-1)));
  const loss = [...element.losses].reduce((best, [s, l]) => (s <= step || best === null ? l : best), null);
  const reached = at < steps.length && element.milestones?.get(step);
  element.querySelector("output").replaceChildren(
    at >= steps.length ? "finished model" : `step ${step}${loss === null ? "" : `  loss ${number(loss, 2)}`}`,
    reached ? make("small", { class: "reached" }, reached) : "",
  );
}

let waiting = 0;

// The line follows at once, the model when the slider has rested for a moment.
function slide(element, steps, at) {
  moving = true;
  show(element, steps, at);
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    moving = false;
    go({ snapshot: at >= steps.length ? "" : String(steps[at]) }, true);
  }, 60);
}

function scrub(event, element, steps, picture) {
  pause(element);
  const last = steps.at(-1);
  const move = ({ clientX }) => {
    const { left, width } = picture.getBoundingClientRect();
    const x = (clientX - left) / width;
    const away = (i) => Math.abs(share(steps[i], last) - x);
    slide(element, steps, steps.reduce((best, _, i) => (away(i) < away(best) ? i : best), 0));
  };
  move(event);
  picture.setPointerCapture(event.pointerId);
  picture.onpointermove = move;
  picture.onpointerup = () => (picture.onpointermove = null);
  picture.onpointercancel = picture.onpointerup;
}

let playing = 0;

function pause(element) {
  clearInterval(playing);
  playing = 0;
  element.querySelector(".replay").textContent = PLAY;
}

// Play from where the slider is, or from the beginning; or pause.
function replay(element, steps) {
  if (playing) {
    pause(element);
    return;
  }
  const from = Number(element.querySelector("input").value);
  let at = from >= steps.length ? 0 : from;
  element.querySelector(".replay").textContent = "❚❚ Pause";
  slide(element, steps, at);
  playing = setInterval(() => {
    at += 1;
    slide(element, steps, at);
    if (at >= steps.length) pause(element);
  }, PAUSE);
}
