// What a change, or an early step of training, does to the answer: the token whose probability changes most, and the text
// that the model would write now.

import { make, percent, shown } from "./dom.js";
import { ask, saved } from "./data.js";

// Fill the place for it in the list of changes.
export async function drawEffect(element, trace) {
  const place = element.querySelector(".effect");
  if (!place || !trace.before || saved) return;
  place.setAttribute("aria-busy", "true");
  const found = await ask("effect", { trace: trace.id }).catch((error) => ({ error: error.message }));
  place.replaceChildren(...words(found));
  place.removeAttribute("aria-busy");
}

function words(found) {
  if (found.error) return [found.error];
  if (found.cosine !== undefined) return [`Cosine with the vector before: ${found.cosine.toFixed(3)}`];
  const { word, before, after } = mostChanged(found.parts);
  const same = Math.abs(before - after) < 0.005;
  return [
    same && make("span", { class: "odds" }, `The answer is as likely as before: P(${shown(word)}) ${percent(after)}`),
    !same && make("span", { class: "odds" }, "P(", make("b", {}, shown(word)), `) ${percent(before)} → ${percent(after)}`),
    found.writes !== undefined && "; ",
    found.writes !== undefined && written(found),
  ].filter(Boolean);
}

// The part of the answer whose log-probability changes most.
function mostChanged(parts) {
  const change = ({ before, after }) => Math.abs(Math.log(Math.max(after, 1e-30) / Math.max(before, 1e-30)));
  return parts.reduce((best, part) => (change(part) > change(best) ? part : best));
}

function written({ wrote, writes, ended }) {
  if (ended ? writes === wrote : wrote.startsWith(writes)) return make("span", {}, "writes the same: ", make("q", {}, writes.trim()));
  return make("span", {}, "now writes: ", make("q", { class: "writes" }, writes.trim() || "nothing", ended ? "" : " …"));
}
