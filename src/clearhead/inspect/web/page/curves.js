// A small line chart.

import { drawn, fitted, fixed, make } from "./dom.js";

const HEIGHT = 210;
const LEFT = 44;
const BOTTOM = 40;
const TOP = 8;
const COLOURS = ["var(--accent)", "var(--plus)", "var(--minus)", "var(--muted)"];

// lines: [{name, points: [[x, y], ...]}]; across: what the x axis counts.
export function curves(lines, { label, across }) {
  const names = lines.map(({ name }, i) => make("small", { style: { color: COLOURS[i % 4] } }, name));
  const picture = fitted((width) => chart(lines, width, { label, across }));
  return make("div", { class: "stacked" }, lines.length > 1 && make("div", { class: "row" }, names), picture);
}

function chart(lines, width, { label, across }) {
  const all = lines.flatMap(({ points }) => points);
  const lowX = Math.min(...all.map(([x]) => x));
  const highX = Math.max(...all.map(([x]) => x));
  const lowY = Math.min(0, ...all.map(([, y]) => y));
  const highY = Math.max(...all.map(([, y]) => y));
  const x = (value) => LEFT + ((width - LEFT - 8) * (value - lowX)) / (highX - lowX || 1);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * (value - lowY)) / (highY - lowY || 1);
  const middle = Math.round((lowX + highX) / 2);
  const paths = lines.map(({ points }, i) =>
    drawn("path", {
      class: "curve",
      style: { stroke: COLOURS[i % 4] },
      d: points.map(([a, b], at) => `${at ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join(""),
    }),
  );
  return drawn(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
    [lowY, (lowY + highY) / 2, highY].map((value) => [
      drawn("line", { class: "axis", x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }),
      drawn(
        "text",
        { class: "quiet", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" },
        fixed(value, Math.abs(highY) < 10 ? 2 : 0),
      ),
    ]),
    [lowX, middle, highX].map((value, i) =>
      drawn(
        "text",
        { class: "quiet", x: x(value), y: HEIGHT - BOTTOM + 17, "text-anchor": ["start", "middle", "end"][i] },
        value,
      ),
    ),
    drawn("text", { class: "quiet", x: x(middle), y: HEIGHT - 6, "text-anchor": "middle" }, across),
    paths,
  );
}
