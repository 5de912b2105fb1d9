// The guided tour: a few sentences first, then the page moves there. One stop after the other.

import { make } from "./dom.js";
import { go, now } from "./state.js";
import { VIEWS } from "./views.js";

// what is said; where the page goes; what is framed. Stops that a family does not have are left out.
const STOPS = [
  [
    "One sentence, all the way",
    "A Transformer turns a text into numbers, works on them layer by layer, and reads its answer off the last ones. We follow one sentence through the very model you trained.",
    { view: "overview" },
    "#stage",
  ],
  [
    "The text is cut into tokens",
    "Frequent words stay whole, rare ones fall into pieces. Each piece has a number. Point at any token: it lights up wherever it appears.",
    { view: "tokenization" },
    "#strips",
  ],
  [
    "Each token becomes a vector",
    "The number picks a row of a table. On the map, words that are used alike have come to lie near each other. Nobody told the model; it learned that.",
    { view: "embedding" },
    "#stage",
  ],
  [
    "Each place gets a pattern",
    "Attention has no sense of order of its own. So a pattern that belongs to the place is mixed in: near places look alike, far ones do not.",
    { view: "position" },
    "#stage",
    (run) => run.position !== "none",
  ],
  [
    "Tokens look at each other",
    "This is attention. A row is a token that asks, a column a token that answers; the darker, the more is taken over. Point at a cell to see the sum behind it, with its numbers.",
    { view: "attention", stage: "weights" },
    ".chosen-stage",
  ],
  [
    "Many heads, many questions",
    "All heads of all layers. Switch one off with the small button under it: the page then shows before and after, side by side.",
    { view: "heads" },
    "#stage",
  ],
  [
    "Source and target",
    "While it writes, the decoder looks back at the source. Drawn as lines, that is an alignment between two languages.",
    { view: "alignment" },
    "#stage",
    (run) => run.family === "encoder-decoder",
  ],
  [
    "The answer takes shape",
    "Read each layer as if it were the last. Early layers guess; somewhere on the way the answer appears.",
    { view: "lens" },
    "#stage",
    (run) => run.head !== "embedding",
  ],
  [
    "A word is chosen",
    "Every word has a probability. Temperature, top-k and top-p decide how bold the choice is.",
    { view: "next" },
    "#stage",
    (run) => run.head === "vocabulary",
  ],
  [
    "The sentence is judged",
    "All vectors become one, and from it comes the answer.",
    { view: "answer" },
    "#stage",
    (run) => run.head !== "vocabulary",
  ],
  [
    "Watch it learn",
    "The slider at the bottom goes back to the start of training. Every view moves with it: from noise to knowledge.",
    {},
    "#learn",
    (run) => run.snapshots.length > 0,
  ],
];

let frame = null;

export function startTour(run) {
  const stops = STOPS.filter(([, , , , fits]) => !fits || fits(run));
  show(
    stops.map(([title, text, where, selector]) => [title, text, { ...where, ...VIEWS[where.view]?.start?.(run) }, selector]),
    0,
  );
}

function leave() {
  document.getElementById("tour")?.remove();
  frame?.classList.remove("shown-by-tour");
}

function show(stops, at) {
  leave();
  const [title, text, where, selector] = stops[at];
  const last = at === stops.length - 1;
  const box = make(
    "section",
    { id: "tour", role: "dialog", "aria-label": "Guided tour", "aria-live": "polite" },
    make("small", {}, `${at + 1} of ${stops.length}`),
    make("h2", {}, title),
    make("p", {}, text),
    make(
      "div",
      { class: "row" },
      at > 0 && make("button", { type: "button", onclick: () => show(stops, at - 1) }, "Back"),
      make(
        "button",
        { type: "button", class: "strong", onclick: () => (last ? leave() : show(stops, at + 1)) },
        last ? "Done" : "Next",
      ),
      make("button", { type: "button", onclick: leave }, "Leave"),
    ),
  );
  document.body.append(box);
  box.querySelector(".strong").focus();
  // text first, then motion: the page follows when there was time to read the title
  setTimeout(() => {
    if (!box.isConnected) return;
    if (Object.keys(where).length) go({ ...where });
    frame = document.querySelector(selector);
    frame?.classList.add("shown-by-tour");
    if (now().view === "attention")
      setTimeout(() => (frame = document.querySelector(selector))?.classList.add("shown-by-tour"), 400);
  }, 500);
}

addEventListener("keydown", (event) => event.key === "Escape" && leave());
