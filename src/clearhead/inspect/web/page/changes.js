// Changes to the model, in the form of the library's to_json: {name: [{kind, value, at}]}. They are part of the address.

import { make } from "./dom.js";
import { go, now } from "./state.js";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export function knockOut(at = {}) {
  return { kind: "scale", value: 0, at };
}

export function isOff(changes, name, at = {}) {
  return (changes[name] ?? []).some((change) => same(change, knockOut(at)));
}

export function count(changes) {
  return Object.values(changes).reduce((sum, list) => sum + list.length, 0);
}

function without(changes, name, change) {
  const left = (changes[name] ?? []).filter((other) => !same(other, change));
  const { [name]: _, ...others } = changes;
  return left.length ? { ...others, [name]: left } : others;
}

// Add a change, or remove it if it is there.
export function toggle(name, change) {
  const { changes } = now();
  const present = (changes[name] ?? []).some((other) => same(other, change));
  const added = { ...changes, [name]: [...(changes[name] ?? []), change] };
  const next = present ? without(changes, name, change) : added;
  const beside = count(next) === 0 ? "" : now().beside || "before";
  go({ changes: next, beside: beside === "before" && count(next) === 0 ? "" : beside });
}

// A change in words: "decoder, block 1, attention, head 2: off".
function words(name, { kind, value, at = {} }) {
  const path = name.replace(/\.blocks\.(\d+)/, ".block $1").split(".");
  if (at.head && path.at(-1) === "head_outputs") path.pop();
  const places = Object.entries(at).map(([axis, where]) => `${axis} ${where.join(", ")}`);
  const off = path.at(-1) === "mask" ? "masked" : path.at(-1) === "weight" ? "× 0" : "off";
  const what =
    kind === "shuffle" ? "shuffled" : kind === "replace" ? `set to ${value}` : value === 0 ? off : `× ${value}`;
  return `${[...path.map(plain), ...places].join(", ")}: ${what}`;
}

function plain(word) {
  return word.replace("feed_forward", "feed-forward").replace("cross_attention", "cross-attention").replaceAll("_", " ");
}

// The list of changes under the tokens, and the step of training; what they do to the answer follows (effect.js).
export function drawChanges(element, state) {
  const changed = count(state.changes) > 0;
  element.hidden = !changed && !state.snapshot;
  const all = Object.entries(state.changes).flatMap(([name, list]) => list.map((change) => [name, change]));
  const chips = all.map(([name, change]) => {
    const undo = () => toggle(name, change);
    const close = make(
      "button",
      { type: "button", class: "plain", "aria-label": `Undo ${words(name, change)}`, onclick: undo },
      "✕",
    );
    return make("span", { class: "change", title: name }, words(name, change), close);
  });
  const compare = state.beside === "before";
  const effect = make("span", { class: "effect", "aria-live": "polite" });
  if (!changed) {
    element.replaceChildren(make("strong", {}, `Step ${state.snapshot} of training:`), effect);
    return;
  }
  element.replaceChildren(
    make("strong", {}, state.snapshot ? `Step ${state.snapshot} of training, changed:` : "Changed:"),
    ...chips,
    make(
      "button",
      { type: "button", "aria-pressed": String(compare), onclick: () => go({ beside: compare ? "" : "before" }) },
      "Before | after",
    ),
    make("button", { type: "button", onclick: () => go({ changes: {}, beside: "" }) }, "Undo all"),
    effect,
  );
}

// A button that sets a tensor, or a part of it, to zero, and back.
export function switchButton(state, name, at, label) {
  const off = isOff(state.changes, name, at);
  return make(
    "button",
    { type: "button", class: "warn", "aria-pressed": String(off), onclick: () => toggle(name, knockOut(at)) },
    `${off ? "Switch on" : "Switch off"} ${label}`,
  );
}
