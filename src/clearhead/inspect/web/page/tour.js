// The tour: a lesson about the model that is open. Each stop moves the page, lights up one element, asks for a prediction,
// and then shows the answer, computed from this model and this text. The stops are in lesson.js.

import { make, phone, still } from "./dom.js";
import { ask } from "./data.js";
import { go, now } from "./state.js";
import { stopsOf } from "./lesson.js";

const CLEAN = { changes: {}, beside: "", snapshot: "", difference: "" }; // every stop starts from the finished model
const place = document.getElementById("lesson");
let latest = 0;
let lit = null;

// The tour is about the finished model, whatever the page shows. For a text that the model refuses there is none: the page
// says why.
export async function startTour(run) {
  const { text, target } = now();
  const query = { run: 0, text: text || run.examples[0], target, snapshot: "", changes: "" };
  const trace = await ask("trace", query).catch(() => null);
  if (trace) show({ run, trace }, stopsOf({ run, trace }), 0);
}

function leave() {
  latest += 1;
  place.replaceChildren();
  place.hidden = true;
  darken();
  document.documentElement.style.setProperty("--lesson", "0px");
}

function darken() {
  lit?.classList.remove("shown-by-tour");
  lit = null;
}

async function show(lesson, stops, at) {
  const mine = (latest += 1);
  darken();
  const stop = stops[at];
  const last = at === stops.length - 1;
  const question = make("div", { class: "question", "aria-live": "polite" });
  const box = make(
    "section",
    { id: "tour", role: "region", "aria-label": "Tour" },
    make("div", { class: "told" }, make("small", {}, `${at + 1} of ${stops.length}`), make("h2", {}, stop.title), make("p", {}, stop.text)),
    question,
    make(
      "div",
      { class: "row steps" },
      at > 0 && make("button", { type: "button", onclick: () => show(lesson, stops, at - 1) }, "Back"),
      make(
        "button",
        { type: "button", class: "strong", onclick: () => (last ? leave() : show(lesson, stops, at + 1)) },
        last ? "Done" : "Next",
      ),
      make("button", { type: "button", onclick: leave }, "Leave"),
    ),
  );
  place.hidden = false;
  place.replaceChildren(box);
  measure();
  box.querySelector(".strong").focus({ preventScroll: true });
  go({ ...CLEAN, ...stop.where });
  await light(stop.lights, mine);
  if (mine !== latest || !stop.ask) return;
  const asked = await stop.ask(lesson).catch(() => null);
  if (mine === latest && asked) pose(question, asked, mine);
}

// A question with its possible answers; a choice shows what is right, where it can be seen.
function pose(element, { question, options, right, shows, reveal, lights }, mine) {
  const choose = async (chosen) => {
    for (const [i, button] of [...element.querySelectorAll("button")].entries()) {
      button.disabled = true;
      if (i === right) button.classList.add("right");
      else if (i === chosen) button.classList.add("wrong");
    }
    element.append(make("p", { class: "answer" }, make("strong", {}, chosen === right ? "Yes. " : "Not this time. "), shows));
    measure();
    if (reveal) go(reveal);
    await light(lights, mine);
  };
  const buttons = options.map((option, i) => make("button", { type: "button", onclick: () => choose(i) }, option));
  element.replaceChildren(make("p", {}, question), make("div", { class: "row tight" }, buttons));
  measure();
}

// Frame an element when the page has drawn it, and bring it into sight.
async function light(selector, mine) {
  if (!selector) return;
  const stage = document.getElementById("stage");
  for (let idle = 0; idle < 100; ) {
    await new Promise((done) => setTimeout(done, 60));
    if (mine !== latest) return;
    const busy = stage.hasAttribute("aria-busy") || stage.dataset.drawn !== location.hash;
    const found = !busy && document.querySelector(selector);
    if (!busy && !stage.querySelector("[aria-busy]")) idle += 1; // a large model takes as long as it takes
    if (!found) continue;
    darken();
    lit = found;
    lit.classList.add("shown-by-tour");
    // on a phone the page is one column: first the lesson, then what it is about, unless that is above the lesson
    const isBelow = place.compareDocumentPosition(lit) & Node.DOCUMENT_POSITION_FOLLOWING;
    const first = phone.matches && isBelow ? place : lit;
    const behavior = still.matches ? "auto" : "smooth";
    first.scrollIntoView({ block: phone.matches ? "start" : "nearest", behavior });
    return;
  }
}

// What sticks to the top of the page begins below the lesson.
function measure() {
  document.documentElement.style.setProperty("--lesson", `${place.offsetHeight}px`);
}

addEventListener("resize", () => !place.hidden && measure());
addEventListener("keydown", (event) => event.key === "Escape" && !place.hidden && leave());
