// Watch it learn: a slider over the run's snapshots moves every view through training, with the loss curve behind it.

import { drawn, make, number } from "./dom.js";
import { ask, saved } from "./data.js";
import { go } from "./state.js";

const WIDTH = 1000;
const HEIGHT = 46;

export async function drawLearning(element, run, state) {
  if (!run.snapshots.length || saved) return;
  element.hidden = false;
  const steps = run.snapshots;
  await (element.built ??= build(element, run, steps));
  const at = state.snapshot === "" ? steps.length : steps.indexOf(Number(state.snapshot));
  const slider = element.querySelector("input");
  if (Number(slider.value) !== at) slider.value = at;
  show(element, steps, at);
}

// Steps are on a logarithmic axis, as the snapshots are: most changes happen early.
function across(step, last) {
  return 8 + ((WIDTH - 16) * Math.log1p(step)) / Math.log1p(last);
}

async function build(element, run, steps) {
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
    valid.map(([step, loss]) =>
      drawn("line", {
        class: "valid",
        x1: across(step, last),
        x2: across(step, last),
        y1: y(loss) - 5,
        y2: y(loss) + 5,
        "vector-effect": "non-scaling-stroke",
      }),
    ),
    steps.map((step) =>
      drawn("line", {
        class: "tick",
        x1: across(step, last),
        x2: across(step, last),
        y1: HEIGHT - 6,
        y2: HEIGHT,
        "vector-effect": "non-scaling-stroke",
      }),
    ),
    drawn("line", { class: "now", y1: 0, y2: HEIGHT, "vector-effect": "non-scaling-stroke" }),
  );
  const slider = make("input", {
    type: "range",
    min: 0,
    max: steps.length,
    step: 1,
    "aria-label": "Step of training",
    oninput: (event) => slide(element, steps, Number(event.target.value)),
  });
  const box = make("div", { class: "curve-box" }, slider, picture);
  picture.addEventListener("pointerdown", (event) => scrub(event, element, steps, picture));
  const play = make("button", { type: "button", onclick: () => replay(element, steps) }, "▶ Watch it learn");
  element.replaceChildren(play, box, make("output", {}));
  element.losses = new Map(train);
}

function show(element, steps, at) {
  const step = steps[Math.min(at, steps.length - 1)];
  const line = element.querySelector(".now");
  for (const name of ["x1", "x2"]) line.setAttribute(name, across(step, steps.at(-1)));
  const loss = [...element.losses].reduce((best, [s, l]) => (s <= step || best === null ? l : best), null);
  element.querySelector("output").textContent =
    at >= steps.length ? "finished model" : `step ${step}${loss === null ? "" : `  loss ${number(loss, 2)}`}`;
}

let waiting = 0;

// The picture follows at once, the model when the slider has rested for a moment.
function slide(element, steps, at) {
  show(element, steps, at);
  clearTimeout(waiting);
  waiting = setTimeout(() => go({ snapshot: at >= steps.length ? "" : String(steps[at]) }, true), 60);
}

function scrub(event, element, steps, picture) {
  const move = ({ clientX }) => {
    const { left, width } = picture.getBoundingClientRect();
    const x = ((clientX - left) / width) * WIDTH;
    const nearest = steps.reduce(
      (best, step, i) =>
        Math.abs(across(step, steps.at(-1)) - x) < Math.abs(across(steps[best], steps.at(-1)) - x) ? i : best,
      0,
    );
    element.querySelector("input").value = nearest;
    slide(element, steps, nearest);
  };
  move(event);
  picture.setPointerCapture(event.pointerId);
  picture.onpointermove = move;
  picture.onpointerup = () => (picture.onpointermove = null);
}

let playing = 0;

function replay(element, steps) {
  clearInterval(playing);
  let at = 0;
  playing = setInterval(() => {
    slide(element, steps, at);
    if (at >= steps.length) clearInterval(playing);
    at += 1;
  }, 900);
}
