// A small picture of a matrix: one pixel for each cell, without labels.

import { make } from "./dom.js";
import { colours, reach } from "./colour.js";

// Painted when it becomes visible, because there may be many. options: rows, columns, values, palette, label, rowNames,
// columnNames, as for matrix.
export function thumbnail(options) {
  const { rows, columns, palette, values } = options;
  const canvas = make("canvas", { role: "img", width: columns, height: rows, "aria-label": described(options) });
  canvas.paint = () => canvas.getContext("2d").putImageData(pixels(options, palette, reach(values, palette)), 0, 0);
  inSight.observe(canvas);
  const picture = make("div", { class: "matrix small" }, canvas);
  if (!options.rowNames) return picture;
  const edge = (kind, names) =>
    make("div", { class: kind, "aria-hidden": true }, names.map((name) => make("span", {}, name)));
  return make("div", { class: "named-edges" }, edge("across", options.columnNames), edge("down", options.rowNames), picture);
}

const inSight = new IntersectionObserver((entries, observer) => {
  for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
    target.paint();
    observer.unobserve(target);
  }
});

export function described({ label, rows, columns }) {
  return `${label}: ${rows} rows, ${columns} columns`;
}

// The colours of all cells.
export function pixels({ rows, columns, values }, palette, most) {
  const colour = colours(palette, most);
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; i += 1) {
    const rgb = colour(values[i]);
    image.data[4 * i] = rgb[0];
    image.data[4 * i + 1] = rgb[1];
    image.data[4 * i + 2] = rgb[2];
    image.data[4 * i + 3] = values[i] === -Infinity ? 0 : 255;
  }
  return image;
}
