// What is measured about heads and sublayers: how much the answer depends on each, and what each head attends to. All is
// measured in the model without changes, so that no change has to wait for it.

import { ask } from "./data.js";
import { colours, css, ink } from "./colour.js";
import { percent } from "./dom.js";

// Changes of the answer's log-probability: {heads: [...], whole}.
export function importanceOf(trace, name) {
  return ask("importance", { trace: trace.unchanged, name });
}

// What each head attends to most: [{name, share}].
export async function rolesOf(trace, name) {
  const { heads } = await ask("roles", { trace: trace.unchanged, name });
  return heads;
}

// The colour of an importance: the more of the answer's probability is lost without a part, the stronger.
export function importanceColour(change) {
  const colour = colours("weights", 1)(Math.max(0, 1 - Math.exp(change)));
  return { background: css(colour), ink: ink(colour) };
}

// Whether the output is a vector, which has no probability.
function isVector(trace) {
  return !trace.guesses && !trace.classes;
}

// How likely the answer is without a part, compared with before: "0.71 ×". Of a vector, the cosine with the one before.
export function factor(change, trace) {
  if (isVector(trace)) return (1 + change).toFixed(2);
  const times = Math.exp(change);
  if (times < 0.001) return "< 0.001 ×";
  return `${times >= 100 ? times.toPrecision(3) : times.toFixed(times < 0.0995 ? 3 : 2)} ×`;
}

export function tell(change, trace) {
  const found = factor(change, trace);
  return isVector(trace) ? `Without it, the cosine with the vector before is ${found}` : `Without it, the answer is ${found} as likely`;
}

// What the numbers under heads are.
export function measure(trace) {
  return isVector(trace) ? "the cosine of the text's vector without it with the vector before" : "how likely the answer is without it, compared with before";
}

export function roleTitle({ name, share }) {
  return name ? `${name} ${percent(share)}` : "";
}

let latest = 0;

// Colour the parts of the map by their importance, if that is quick; one request after the other, so that no click waits long.
export async function colourMap(element, trace) {
  const mine = (latest += 1);
  if (!trace.quick) return;
  for (const button of element.querySelectorAll("button[data-name]")) {
    const found = await importanceOf(trace, button.dataset.name).catch(() => null);
    if (mine !== latest || !found) return;
    button.style.setProperty("--importance", importanceColour(found.whole).background);
    button.classList.add("measured");
    button.title = tell(found.whole, trace);
  }
}
