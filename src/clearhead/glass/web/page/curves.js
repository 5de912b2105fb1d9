// A small line chart.

import { drawn, fixed } from "./dom.js";

const WIDTH = 460;
const HEIGHT = 210;
const LEFT = 44;
const BOTTOM = 24;
const COLOURS = ["var(--accent)", "var(--plus)", "var(--minus)", "var(--muted)"];

// lines: [{name, points: [[x, y], ...]}]
export function curves(lines, { label }) {
  const all = lines.flatMap(({ points }) => points);
  const lowX = Math.min(...all.map(([x]) => x));
  const highX = Math.max(...all.map(([x]) => x));
  const lowY = Math.min(0, ...all.map(([, y]) => y));
  const highY = Math.max(...all.map(([, y]) => y));
  const x = (value) => LEFT + ((WIDTH - LEFT - 8) * (value - lowX)) / (highX - lowX || 1);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 24) * (value - lowY)) / (highY - lowY || 1);
  const paths = lines.map(({ points }, i) =>
    drawn("path", {
      class: "curve",
      style: { stroke: COLOURS[i % 4] },
      d: points.map(([a, b], at) => `${at ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join(""),
    }),
  );
  const names =
    lines.length > 1 &&
    lines.map(({ name }, i) =>
      drawn("text", { x: LEFT + i * 104, y: 12, class: "quiet", style: { fill: COLOURS[i % 4] } }, name),
    );
  return drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    [lowY, (lowY + highY) / 2, highY].map((value) => [
      drawn("line", { class: "axis", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      drawn(
        "text",
        { class: "quiet", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" },
        fixed(value, Math.abs(highY) < 10 ? 2 : 0),
      ),
    ]),
    [lowX, Math.round((lowX + highX) / 2), highX].map((value, i) =>
      drawn("text", { class: "quiet", x: x(value), y: HEIGHT - 6, "text-anchor": ["start", "middle", "end"][i] }, value),
    ),
    paths,
    names || null,
  );
}
