// Each token becomes a vector: its numbers, and where it lies among all words.

import { drawn, make, number, shown } from "../dom.js";
import { ask } from "../data.js";
import { light } from "../highlight.js";
import { sideOf, tensorMatrix } from "../show.js";
import { token } from "../tokens.js";

const [WIDTH, HEIGHT] = [620, 400];

export const embedding = {
  title: "Embedding",
  of: "stack",
  short: "Each token picks its row; a map of all words",
  lead: "Each id picks its row of a large table: a vector that training has put near the vectors of words that are used alike. From here on the model knows nothing of letters.",
  fits: () => true,
  tensor: ({ state }) => `${state.stack}.embedding`,
  async draw(context) {
    const { state, trace } = context;
    const side = sideOf(state.stack);
    const words = await ask("words", { trace: trace.id, stack: state.stack });
    const numbers = await tensorMatrix(context, `${state.stack}.embedding`, {
      down: side,
      across: "channel",
      height: 330,
    });
    return [
      make("section", { class: "card" }, make("h2", {}, "The vectors of this sentence"), numbers),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "A map of the words"),
        drawMap(trace, side, words),
        note(words),
      ),
      make("section", { class: "card" }, make("h2", {}, "Who points the same way"), neighbours(trace, side, words)),
    ];
  },
};

function note({ share, words }) {
  const text = `${words.length.toLocaleString("en")} words in the two directions in which they differ most. These two keep ${(100 * share).toFixed(1)} % of what there is: near on the map need not be near in truth.`;
  return make("p", { class: "note" }, text);
}

function drawMap(trace, side, { ids, words, points }) {
  const spread = (axis) => {
    const all = points.map((point) => point[axis]);
    return [Math.min(...all), Math.max(...all)];
  };
  const [across, down] = [spread(0), spread(1)];
  const x = (point) => 20 + ((WIDTH - 40) * (point[0] - across[0])) / (across[1] - across[0] || 1);
  const y = (point) => HEIGHT - 20 - ((HEIGHT - 40) * (point[1] - down[0])) / (down[1] - down[0] || 1);
  const mine = new Map(trace.tokens[side].map(({ id }, index) => [id, index]));
  const dots = ids.map((id, i) =>
    mine.has(id)
      ? null
      : drawn(
          "circle",
          { class: "word", cx: x(points[i]), cy: y(points[i]), r: 2 },
          drawn("title", {}, shown(words[i])),
        ),
  );
  const own = ids.flatMap((id, i) =>
    mine.has(id) ? [{ index: mine.get(id), word: words[i], x: x(points[i]), y: y(points[i]) }] : [],
  );
  apart(own);
  return drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Map of the embeddings" },
    dots,
    own.map((place) => drawOwn(side, place)),
  );
}

// Move labels down until none covers another.
function apart(places) {
  const done = [];
  for (const place of places.sort((a, b) => a.y - b.y)) {
    place.label = place.y;
    const covers = (other) => Math.abs(other.label - place.label) < 14 && Math.abs(other.x - place.x) < 90;
    while (done.some(covers)) place.label += 3;
    done.push(place);
  }
}

function drawOwn(side, { index, word, x, y, label }) {
  const flip = x > WIDTH - 90;
  const edge = x + (flip ? -12 : 12);
  return drawn(
    "g",
    { "data-token": `${side}:${index}`, onpointerenter: () => light(`${side}:${index}`) },
    label !== y && drawn("path", { class: "leader", d: `M${x} ${y}L${edge} ${label}` }),
    drawn("circle", { class: `own ${side}-word`, cx: x, cy: y, r: 5 }),
    drawn(
      "text",
      { class: `${side}-word halo`, x: edge, y: label + 4, "text-anchor": flip ? "end" : "start" },
      shown(word),
    ),
  );
}

function neighbours(trace, side, { neighbours: near }) {
  const rows = trace.tokens[side].slice(0, 60).map((_, index) =>
    make(
      "tr",
      {},
      make("th", {}, token(trace, side, index)),
      near[index].map(([word, cosine]) =>
        make("td", {}, make("span", { class: "token" }, shown(word), make("small", {}, number(cosine, 2)))),
      ),
    ),
  );
  return make("div", { class: "scroll" }, make("table", { class: "near" }, make("tbody", {}, rows)));
}
