// The panel at the right: what the tensor is, how the chosen cell was computed, and the lines of code that compute it.

import { make, number } from "./dom.js";
import { ask, saved, tensor } from "./data.js";
import { go } from "./state.js";
import { kindOf, whereIs } from "./kinds.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";

// MathML from the server as elements; anything else is left out.
function formula(text, kind = "") {
  const parsed = new DOMParser().parseFromString(text, "application/xml");
  const root = parsed.documentElement;
  return make("div", { class: `formula ${kind}` }, root.localName === "math" ? copied(root) : root.textContent);
}

function copied(node) {
  const element = document.createElementNS(MATHML, node.localName);
  for (const name of ["display", "mathvariant", "stretchy", "fence", "separator", "open", "close"]) {
    if (node.hasAttribute(name)) element.setAttribute(name, node.getAttribute(name));
  }
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) element.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && /^m[a-z]+$/.test(child.localName)) element.append(copied(child));
  }
  return element;
}

let wanted = 0;
let explained = {}; // the cell that was explained last
const panel = document.getElementById("inspector");

// Show what a tensor is; `trace` is one of the page's traces.
export async function showTensor(trace, name) {
  const mine = (wanted += 1);
  panel.dataset.tensor = name;
  panel.setAttribute("aria-busy", "true");
  document.body.classList.remove("wide");
  const story = await ask("story", { trace: trace.id, name }).catch((error) => ({ error: error.message }));
  if (mine !== wanted) return;
  const known = explained.trace === trace.id && explained.name === name;
  const inside = known ? cellOf(explained) : [make("p", { class: "note" }, HINT)];
  const cell = make("section", { class: "card", id: "cell", "aria-live": "polite" }, inside);
  panel.replaceChildren(...(story.error ? [failed(story.error)] : [cell, about(trace, name, story), lines(story)]));
  panel.removeAttribute("aria-busy");
}

const HINT = "Point at a cell, or move to it with the arrow keys, to see how it was computed.";

function failed(message) {
  return make("section", { class: "card error" }, message);
}

export function hidePanel() {
  wanted += 1;
  document.body.classList.add("wide");
  panel.replaceChildren();
  panel.removeAttribute("aria-busy");
}

function about(trace, name, story) {
  const links = story.parents.map((parent) =>
    make("button", { type: "button", onclick: () => go(whereIs(trace, parent)) }, parent),
  );
  return make(
    "section",
    { class: "card" },
    make("div", {}, make("h2", {}, story.title), make("div", { class: "name-path" }, name)),
    make("p", {}, story.paragraph),
    formula(story.mathml),
    make("p", { class: "note" }, `${story.shape_in_words} = [${story.shape.join(", ")}]`),
    links.length > 0 && make("div", {}, make("h3", {}, "Computed from"), make("div", { class: "parents" }, links)),
  );
}

// The function that computes it, with the lines that count marked; of long functions only the lines around them.
function lines({ source }) {
  const { file, first, lines: all, marked } = source;
  const from = Math.max(0, (marked[0] ?? first) - first - 3);
  const shownLines = all.slice(from, (marked.at(-1) ?? first) - first + 3);
  const indent = Math.min(...shownLines.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  const code = shownLines.map((line, i) => {
    return make(marked.includes(first + from + i) ? "mark" : "span", {}, line.slice(indent));
  });
  return make(
    "section",
    { class: "card", id: "source" },
    make(
      "div",
      {},
      make("h3", {}, "The lines that compute it"),
      make("div", { class: "name-path" }, `${file}:${marked[0] ?? first}`),
    ),
    make("pre", { class: "source-lines", tabindex: 0 }, make("code", {}, code)),
  );
}

let asked = 0;

// Show how one cell was computed, with its numbers. Of many requests in quick succession only the last is answered.
export function explain(trace, name, index) {
  const mine = (asked += 1);
  setTimeout(async () => {
    if (mine !== asked) return;
    const said = await ask("cell", { trace: trace.id, name, index: index.join(",") }).catch((error) =>
      saved ? valueAlone(trace, name, index) : { error: error.message },
    );
    if (mine !== asked) return;
    explained = { trace: trace.id, name, index, said };
    document.getElementById("cell")?.replaceChildren(...cellOf(explained));
    for (const wide of panel.querySelectorAll(".formula")) fit(wide);
  }, 40);
}

// A formula that is wider than the panel gets smaller letters, as long as they can be read.
function fit(element) {
  const share = element.clientWidth / element.scrollWidth;
  if (share < 1) element.style.fontSize = `${Math.max(0.68, share * 0.98)}em`;
}

// A saved page has the value of every cell, but not the computation of all of them.
async function valueAlone(trace, name, index) {
  const { data } = await tensor(trace.id, name, index.join(","));
  const place = kindOf(trace, name).axes.filter((axis) => axis !== "batch");
  const note = `How it was computed is not in this file. ${saved.absent}`;
  return { place: place.map((axis, i) => `${axis} ${index[i]}`).join(", "), traced: data[0], note };
}

function cellOf({ name, index, said }) {
  if (said.error) return [make("p", { class: "note" }, said.error)];
  return [
    make("div", {}, make("h3", {}, "This cell"), make("div", { class: "note" }, said.place)),
    make(
      "div",
      { class: "value", id: "value", data: { value: said.traced, cell: `${name} ${index}` } },
      number(said.traced, 4),
    ),
    said.changed && make("p", { class: "note" }, `This value was set by a change; the formula gives ${number(said.value, 4)}.`),
    said.formula && formula(said.formula),
    said.note && make("p", { class: "note" }, said.note),
    said.numbers && formula(said.numbers, "numbers"),
    said.numbers && make("div", { class: "formula result" }, `= ${number(said.value, 4)}`),
    said.terms?.length > 1 && make("div", {}, make("h3", {}, "The largest terms of the sum"), termBars(said.terms)),
  ].filter(Boolean);
}

function termBars(terms) {
  const most = Math.max(...terms.map(({ value }) => Math.abs(value))) || 1;
  return make(
    "div",
    { class: "terms" },
    terms.map(({ label, value }) =>
      make(
        "div",
        { class: "term" },
        make("span", { title: label }, label),
        make("i", { class: value < 0 ? "minus" : "plus", style: { "--part": Math.abs(value) / most } }),
        make("output", {}, number(value, 3)),
      ),
    ),
  );
}
