// The map at the left, as in the paper's figure: data flows upward, the encoder is at the left, the decoder at the right.

import { make, phone } from "./dom.js";
import { go } from "./state.js";
import { VIEWS } from "./views.js";
import { isOff } from "./changes.js";
import { MOST_OPEN, headPart, partsOf } from "./diagram/parts.js";

export function drawMap(element, run, state) {
  const where = [state.view, state.stack, state.layer, state.part].join();
  const stays = element.dataset.where === where && element.querySelector("details").open;
  element.dataset.where = where;
  const open = !phone.matches || stays; // on a phone it closes after a choice
  const stacks = make(
    "div",
    { class: "stacks" },
    run.stacks.map((stack) => drawStack(stack, run, state)),
  );
  const { where: output, title } = headPart(run);
  const head = link(output, title, "head", state, []);
  const whole = make("div", { class: "whole" }, wholeViews(run, state));
  const isDrawn = state.view === "overview"; // large, in the middle of the page
  const model = isDrawn ? [] : [head, up(), stacks];
  const details = make("details", { open }, make("summary", {}, "Map of the model"), whole, model);
  element.replaceChildren(details);
  const chosen = element.querySelector(".chosen")?.getBoundingClientRect();
  const frame = element.getBoundingClientRect();
  if (chosen && (chosen.top < frame.top || chosen.bottom > Math.min(frame.bottom, innerHeight)))
    element.scrollTop += chosen.top - frame.top - element.clientHeight / 2;
}

function up() {
  return make("div", { class: "flow", "aria-hidden": true }, "▲");
}

function wholeViews(run, state) {
  const views = Object.entries(VIEWS).filter(([, view]) => view.whole && view.fits(run));
  return views.map(([name, view]) =>
    make(
      "button",
      {
        type: "button",
        class: state.view === name && "chosen",
        onclick: () => go({ view: name, ...view.start?.(run) }),
      },
      view.title,
    ),
  );
}

function drawStack(stack, run, state) {
  const { below, blocks, above } = partsOf(run, stack);
  const rotary = run.position === "rotary" && {
    kind: "position",
    title: "Rotary position",
    where: { view: "position", stack: stack.name },
  };
  return make(
    "div",
    { class: `stack ${stack.name}` },
    make("h3", {}, stack.name),
    [...below, rotary].filter(Boolean).map((part) => drawPart(part, state)),
    blocks.map((block) => drawBlock(stack, block, state)),
    above.map((part) => drawPart(part, state)),
  );
}

// One block with its parts; in deep models only the current block is open.
function drawBlock(stack, { layer, parts }, state) {
  const here = state.stack === stack.name && state.layer === layer;
  const name = `Block ${layer}`;
  if (stack.layers > MOST_OPEN && !here) {
    const open = { view: "attention", stack: stack.name, layer, part: "attention" };
    return make(
      "div",
      { class: "block closed" },
      make("button", { type: "button", class: "name", onclick: () => go(open) }, name),
    );
  }
  return make(
    "div",
    { class: "block", role: "group", "aria-label": `${stack.name}, block ${layer}` },
    make("span", { class: "name" }, name),
    grouped(parts).map((group) =>
      Array.isArray(group)
        ? make("div", { class: "around" }, group.map((part) => drawPart(part, state)))
        : drawPart(group, state),
    ),
  );
}

// The parts that a residual line goes around, with the addition where it ends, as one group.
function grouped(parts) {
  const found = [];
  for (const part of parts) {
    if (part.kind === "add") found.push([...found.splice(found.length - part.over), part]);
    else found.push(part);
  }
  return found;
}

// What must agree with the state, so that a part is the one that is shown.
const COMPARED = { embedding: ["stack"], position: ["stack"] };

function drawPart({ kind, title, name, where }, state) {
  if (kind === "add") return make("span", { class: "plus", title: "Add: the residual connection" }, "+");
  const button = link(where, title, kind, state, COMPARED[where.view] ?? ["stack", "layer", "part"]);
  if (name) button.dataset.name = name;
  if (name && isOff(state.changes, name)) button.classList.add("off");
  return button;
}

function link(where, title, kind, state, compared) {
  const isWhole = VIEWS[where.view].whole; // then it is in the list above the map
  const chosen = !isWhole && state.view === where.view && compared.every((key) => state[key] === where[key]);
  return make(
    "button",
    {
      type: "button",
      class: `${kind}${chosen ? " chosen" : ""}`,
      "aria-current": chosen && "step",
      onclick: () => go(where),
    },
    title,
  );
}

// The map begins below the tokens and ends above the bar at the foot of the page.
export function keepMapInSight() {
  const [strips, changes, learn] = ["strips", "changes", "learn"].map((id) => document.getElementById(id));
  const { style } = document.documentElement;
  const observer = new ResizeObserver(() => {
    style.setProperty("--above", `${strips.offsetHeight + changes.offsetHeight}px`);
    style.setProperty("--foot", `${learn.offsetHeight}px`);
  });
  for (const element of [strips, changes, learn]) observer.observe(element);
}
