// Attention as curves: from the key's lane at the lower edge to the query's lane at the upper edge.

import { drawn, percent } from "../dom.js";

const FAINTEST = 0.03; // weights below this are not drawn
const MOST_KEYS = 6; // curves that end at one query

// options: from(key), to(query): x; bottom, top: y; side: whose tokens the queries are.
export function curves({ rows, columns, data }, { from, to, bottom, top, side }) {
  const found = [];
  for (let query = 0; query < rows; query += 1) {
    const row = data.slice(query * columns, (query + 1) * columns).map((weight, key) => ({ weight, key }));
    const strongest = row.sort((a, b) => b.weight - a.weight).slice(0, MOST_KEYS);
    for (const { weight, key } of strongest.filter((each) => each.weight >= FAINTEST)) {
      found.push(curve({ query, weight, x: from(key), end: to(query), bottom, top, side }));
    }
  }
  return found;
}

function curve({ query, weight, x, end, bottom, top, side }) {
  const bend = (bottom - top) * 0.55;
  return drawn(
    "path",
    {
      class: `fibre ${side}`,
      d: `M${x.toFixed(1)} ${bottom}C${x.toFixed(1)} ${(bottom - bend).toFixed(1)} ${end.toFixed(1)} ${(top + bend).toFixed(1)} ${end.toFixed(1)} ${top}`,
      "stroke-width": (0.6 + 3.4 * weight).toFixed(2),
      data: { lane: query },
      style: { "--weight": weight.toFixed(3) },
    },
    drawn("title", {}, percent(weight)),
  );
}
