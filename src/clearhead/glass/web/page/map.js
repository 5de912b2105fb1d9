// The map at the left, as in the paper's figure: data flows upward, the encoder is at the left, the decoder at the right.

import { make, phone } from "./dom.js";
import { go } from "./state.js";
import { VIEWS } from "./views.js";
import { isOff } from "./changes.js";
import { titleOf, viewOf } from "./kinds.js";

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
  const head = link({ view: run.head === "vocabulary" ? "next" : "answer" }, HEADS[run.head], "head", state, []);
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

const HEADS = { vocabulary: "Logits → softmax", classes: "Classes", embedding: "Sentence vector" };

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
  const blocks = Array.from({ length: stack.layers }, (_, layer) => drawBlock(stack, layer, run, state));
  return make(
    "div",
    { class: `stack ${stack.name}` },
    make("h3", {}, stack.name),
    link({ view: "embedding", stack: stack.name }, "Embedding", "embed", state, ["stack"]),
    run.position !== "none" && link({ view: "position", stack: stack.name }, "Position", "embed", state, ["stack"]),
    up(),
    blocks,
  );
}

// One block with its sublayers; in deep models only the current block is open.
function drawBlock(stack, layer, run, state) {
  const here = state.stack === stack.name && state.layer === layer;
  const many = stack.layers > 3 && !here;
  const name = `Block ${layer}`;
  if (many) {
    const open = { view: "attention", stack: stack.name, layer, part: "attention" };
    return make(
      "div",
      { class: "block" },
      make("button", { type: "button", class: "name", onclick: () => go(open) }, name),
    );
  }
  return make(
    "div",
    { class: "block", role: "group", "aria-label": `${stack.name}, block ${layer}` },
    make("span", { class: "name" }, name),
    stack.sublayers.map((part) => {
      const where = { stack: stack.name, layer, part };
      const sublayer = link({ view: viewOf(part), ...where }, titleOf(part), part, state, ["stack", "layer", "part"]);
      if (isOff(state.changes, `${stack.name}.blocks.${layer}.${part}`)) sublayer.classList.add("off");
      const norm = link({ view: "addnorm", ...where }, "Add & norm", "norm", state, ["stack", "layer", "part"]);
      return run.norm_order === "pre" ? [norm, sublayer] : [sublayer, norm];
    }),
  );
}

function link(where, title, kind, state, compared) {
  const chosen = state.view === where.view && compared.every((key) => state[key] === where[key]);
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
