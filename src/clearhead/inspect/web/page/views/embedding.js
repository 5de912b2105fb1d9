// Each token becomes a vector: its numbers, and its position among all embeddings.

import { drawn, fitted, later, make, number, shown } from "../dom.js";
import { ask } from "../data.js";
import { highlight } from "../highlight.js";
import { sideOf } from "../kinds.js";
import { tensorMatrix } from "../show.js";
import { token } from "../tokens.js";

const TALLEST = 400;
const MOST_NAMED = 70;

export const embedding = {
  title: "Embedding",
  of: "stack",
  short: "Each token selects its row of a table; a map of the table",
  lead: "Each id selects its row of a large table: a vector that training has placed near the vectors of tokens with similar uses. From here on the model does not see letters.",
  differs: true,
  fits: () => true,
  tensor: ({ state }) => `${state.stack}.embedding`,
  async draw(context) {
    const { state, trace } = context;
    const side = sideOf(state.stack);
    const asked = { trace: trace.id, stack: state.stack };
    const [words, numbers] = await Promise.all([
      ask("words", asked),
      tensorMatrix(context, `${state.stack}.embedding`, { down: side, across: "channel", height: 330 }),
    ]);
    const near = later(ask("near", asked), (found) => neighbours(trace, side, found));
    return [
      make("section", { class: "card" }, make("h2", {}, "The vectors of this text"), numbers),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "A map of the embeddings"),
        fitted((width) => drawMap(trace, side, words, { width, height: Math.min(TALLEST, Math.max(300, 0.65 * width)) })),
        note(words),
      ),
      make("section", { class: "card" }, make("h2", {}, "Tokens with similar vectors"), near),
    ];
  },
};

function note({ share, words }) {
  const text = `${words.length.toLocaleString("en")} tokens, projected onto the first two principal components. These explain ${(100 * share).toFixed(1)} % of the variance, so tokens that are near on the map need not be similar.`;
  return make("p", { class: "note" }, text);
}

function drawMap(trace, side, { ids, words, points }, { width, height }) {
  const spread = (axis) => {
    const all = points.map((point) => point[axis]);
    return [Math.min(...all), Math.max(...all)];
  };
  const across = spread(0);
  const down = spread(1);
  const x = (point) => 20 + ((width - 40) * (point[0] - across[0])) / (across[1] - across[0] || 1);
  const y = (point) => height - 20 - ((height - 40) * (point[1] - down[0])) / (down[1] - down[0] || 1);
  const mine = new Map(trace.tokens[side].map(({ id }, index) => [id, index]));
  const others = ids.flatMap((id, i) =>
    mine.has(id) ? [] : [{ word: words[i], x: x(points[i]), y: y(points[i]) }],
  );
  const own = ids.flatMap((id, i) =>
    mine.has(id) ? [{ index: mine.get(id), word: words[i], x: x(points[i]), y: y(points[i]) }] : [],
  );
  apart(own);
  const labels = labelled(own, others, width);
  const named = drawn("text", { class: "halo", "text-anchor": "middle" });
  const picture = drawn(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Map of the embeddings" },
    drawn("path", { class: "words", d: others.map((place) => `M${place.x} ${place.y}h0`).join("") }),
    labels.map((place) => drawn("text", { class: "quiet landmark", x: place.x, y: place.y - 5, "text-anchor": "middle" }, shown(place.word))),
    own.map((place) => drawOwn(side, place, width)),
    named,
  );
  picture.addEventListener("pointermove", (event) => nameNearest(picture, others, named, event));
  return picture;
}

// Some other tokens to name, where there is room: whole words, the frequent ones first (their ids are lower).
function labelled(own, others, most) {
  const width = (word) => 6 + 6.2 * word.length;
  const taken = own.map(({ x, label, word }) => ({ x: x + width(word) / 2, y: label, wide: width(word) + 26 }));
  const found = [];
  for (const place of others.filter(({ word }) => /^ ?\p{L}{3,}$/u.test(word))) {
    const box = { x: place.x, y: place.y - 9, wide: width(place.word) };
    const inside = box.x - box.wide / 2 > 0 && box.x + box.wide / 2 < most && box.y > 10;
    const covers = (other) => Math.abs(other.y - box.y) < 15 && Math.abs(other.x - box.x) < (other.wide + box.wide) / 2 + 4;
    if (!inside || taken.some(covers)) continue;
    taken.push(box);
    found.push(place);
    if (found.length === MOST_NAMED) break;
  }
  return found;
}

// All points are one path, because a thousand elements would be slow; so the nearest point is searched for.
function nameNearest(picture, places, named, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  const away = (place) => (place.x - at.x) ** 2 + (place.y - at.y) ** 2;
  const nearest = places.reduce((best, place) => (away(place) < away(best) ? place : best), places[0]);
  named.textContent = nearest && away(nearest) < 100 ? shown(nearest.word) : "";
  if (named.textContent) for (const [key, value] of [["x", nearest.x], ["y", nearest.y - 7]]) named.setAttribute(key, value);
}

// Move labels down until none overlaps another.
function apart(places) {
  const done = [];
  for (const place of places.sort((a, b) => a.y - b.y)) {
    place.label = place.y;
    const covers = (other) => Math.abs(other.label - place.label) < 14 && Math.abs(other.x - place.x) < 90;
    while (done.some(covers)) place.label += 3;
    done.push(place);
  }
}

function drawOwn(side, { index, word, x, y, label }, width) {
  const flip = x > width - 90;
  const edge = x + (flip ? -12 : 12);
  return drawn(
    "g",
    { "data-token": `${side}:${index}`, onpointerenter: () => highlight(`${side}:${index}`) },
    label !== y && drawn("path", { class: "leader", d: `M${x} ${y}L${edge} ${label}` }),
    drawn("circle", { class: `own ${side}-word`, cx: x, cy: y, r: 5 }),
    drawn(
      "text",
      { class: `${side}-word halo`, x: edge, y: label + 4, "text-anchor": flip ? "end" : "start" },
      shown(word),
    ),
  );
}

function neighbours(trace, side, near) {
  const places = new Map(trace.tokens[side].map(({ id }, index) => [id, index]).toReversed()); // the first position of each
  const first = [...places].toReversed().filter(([id]) => near[id]);
  const rows = first.map(([id, index]) =>
    make(
      "tr",
      {},
      make("th", {}, token(trace, side, index)),
      make(
        "td",
        {},
        make(
          "div",
          { class: "row tight" },
          near[id].map(([word, cosine]) => make("span", { class: "token" }, shown(word), make("small", {}, number(cosine, 2)))),
        ),
      ),
    ),
  );
  return make(
    "div",
    { class: "stacked" },
    make("p", { class: "note" }, "With the cosine of the angle between the two vectors: 1 means the same direction."),
    make("table", { class: "near" }, make("tbody", {}, rows)),
  );
}
