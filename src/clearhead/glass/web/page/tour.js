// The guided tour: at each stop the text first, then the page moves there.

import { make } from "./dom.js";
import { go, now } from "./state.js";
import { VIEWS } from "./views.js";

// title, text, where the page goes, what is framed, and whether the run has this stop
const STOPS = [
  [
    "From the text to the output",
    "A Transformer turns a text into vectors, transforms them layer by layer, and computes its output from the last ones. This tour follows one text through the model you trained.",
    { view: "overview" },
    "#stage",
  ],
  [
    "The text is split into tokens",
    "Frequent words are one token, rare ones are split into several. Each token has an id. Point at any token to highlight it wherever it appears.",
    { view: "tokenization" },
    "#strips",
  ],
  [
    "Each token becomes a vector",
    "The id selects a row of a table. On the map, words with similar uses are near each other: the model has learned this from its data.",
    { view: "embedding" },
    "#stage",
  ],
  [
    "Each position has its own vector",
    "Attention by itself ignores the order of the tokens. So positions are encoded as well: those of near positions are similar, those of distant ones are not.",
    { view: "position" },
    "#stage",
    (run) => run.position !== "none",
  ],
  [
    "Tokens attend to each other",
    "Each row is a query, each column a key; the darker the cell, the more of that token's value is taken. Point at a cell to see how it was computed, with its numbers.",
    { view: "attention", stage: "weights" },
    ".chosen-stage",
  ],
  [
    "Many heads",
    "All heads of all layers. Switch one off with the small button under it: the page then compares before and after.",
    { view: "heads" },
    "#stage",
  ],
  [
    "Source and target",
    "While it writes, the decoder attends to the source. Drawn as lines, the weights are an alignment between two languages.",
    { view: "alignment" },
    "#stage",
    (run) => run.family === "encoder-decoder",
  ],
  [
    "Predictions after each layer",
    "The head applied to each layer as if it were the last. Early layers are far from the output; in some layer the final prediction appears.",
    { view: "lens" },
    "#stage",
    (run) => run.head !== "embedding",
  ],
  [
    "A token is chosen",
    "Every token has a probability. Temperature, top-k and top-p determine how random the choice is.",
    { view: "next" },
    "#stage",
    (run) => run.head === "vocabulary",
  ],
  [
    "The output for the whole text",
    "The vectors of all tokens are pooled into one, from which the output is computed.",
    { view: "answer" },
    "#stage",
    (run) => run.head !== "vocabulary",
  ],
  [
    "Watch it learn",
    "The slider at the bottom goes back to the start of training. Every view shows the model at that step.",
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
  // the page moves when there was time to read the title
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
