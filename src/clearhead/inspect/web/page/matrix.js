// A matrix as coloured cells, with labels at its edges. The cell under the pointer, or the one chosen with the arrow keys,
// is described below it; large matrices can be zoomed.

import { fixed, make, number, say } from "./dom.js";
import { colours, css, ink, reach } from "./colour.js";
import { isHighlighted, highlight, repaintOnHighlight } from "./highlight.js";
import { hatch } from "./hatch.js";
import { described, pixels } from "./thumbnail.js";

const LABEL_FONT = '12px Inter, system-ui, "Segoe UI", Roboto, sans-serif';

// options: rows, columns (counts), values (row by row), palette, most, rowNames, columnNames (labels at the edges),
// rowTokens, columnTokens (which tokens they are, for highlighting), label (for screen readers), height,
// onpoint(row, column), onpick(row, column), isMasked(row, column).
export function matrix(options) {
  const canvas = make("canvas", { role: "img", tabindex: 0, "aria-label": described(options) });
  const picture = new Picture(canvas, options);
  const box = make("div", { class: "matrix" }, canvas, picture.caption(), picture.legend());
  new ResizeObserver(() => picture.resize(box.clientWidth)).observe(box);
  box.picture = picture;
  return box;
}

class Picture {
  constructor(canvas, options) {
    Object.assign(this, { canvas, options, pen: canvas.getContext("2d"), cursor: null });
    this.window = { left: 0, top: 0, columns: options.columns, rows: options.rows };
    this.palette = options.palette ?? "signed";
    this.most = options.most ?? reach(options.values, this.palette);
    this.listen();
    repaintOnHighlight(canvas, () => this.paint());
  }

  // One pixel for each cell; the canvas scales it.
  pixels() {
    const { rows, columns } = this.options;
    const key = document.documentElement.dataset.theme;
    if (this.drawnFor === key) return this.sheet;
    this.sheet = new OffscreenCanvas(columns, rows);
    this.sheet.getContext("2d").putImageData(pixels(this.options, this.palette, this.most), 0, 0);
    this.drawnFor = key;
    return this.sheet;
  }

  resize(width) {
    if (!width || width === this.width) return;
    this.width = width;
    this.paint();
  }

  // The layout: labels at the left and above, then the cells.
  measure() {
    const { rowNames, columnNames, height = 520 } = this.options;
    const { rows, columns } = this.window;
    const wanted = columnNames ? 46 : 34;
    this.pen.font = LABEL_FONT;
    const widest = (names) =>
      Math.min(170, Math.max(0, ...names.slice(0, 400).map((n) => this.pen.measureText(n).width)));
    const left = rowNames ? Math.ceil(widest(rowNames)) + 12 : 0;
    const across = Math.min(wanted, (this.width - left - 1) / columns);
    const down = Math.min(38, Math.max(across, rows > 60 ? 0 : rows > 24 ? 13 : 19), height / rows);
    const narrow = across < 8 ? 4 : 0; // no room for labels
    const edge = rowNames && down < 13 ? 7 : 0; // the first and the last label are higher than their rows
    const top = Math.max(edge, narrow || (columnNames ? Math.ceil(widest(columnNames)) + 12 : 0));
    return { left, top, across, down, edge };
  }

  paint() {
    if (!this.width) return;
    const layout = (this.layout = this.measure());
    const { rows, columns, left, top } = { ...this.window, ...layout, left: layout.left, top: layout.top };
    const width = left + layout.across * columns;
    const height = top + layout.down * rows + layout.edge;
    const density = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.ceil(width * density), height: Math.ceil(height * density) });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    this.pen.setTransform(density, 0, 0, density, 0, 0);
    this.pen.imageSmoothingEnabled = layout.across < 1;
    const { left: x, top: y } = this.window;
    this.pen.drawImage(this.pixels(), x, y, columns, rows, left, top, layout.across * columns, layout.down * rows);
    if (this.options.isMasked) this.paintMasked();
    this.paintGaps();
    this.paintNumbers();
    this.paintNames();
    this.paintHighlight();
  }

  paintGaps() {
    const { left, top, across, down } = this.layout;
    if (Math.min(across, down) < 9) return;
    this.pen.fillStyle = this.ground();
    for (let i = 1; i < this.window.columns; i += 1) {
      this.pen.fillRect(left + i * across - 0.5, top, 1, down * this.window.rows);
    }
    for (let i = 1; i < this.window.rows; i += 1) {
      this.pen.fillRect(left, top + i * down - 0.5, across * this.window.columns, 1);
    }
  }

  paintMasked() {
    const { left, top, across, down } = this.layout;
    const colours = { ground: this.ground(), line: this.faint() };
    this.cells((row, column) => {
      if (!this.options.isMasked(row + this.window.top, column + this.window.left)) return;
      hatch(this.pen, { x: left + column * across, y: top + row * down, width: across, height: down }, colours);
    });
  }

  ground() {
    return getComputedStyle(this.canvas).getPropertyValue("--card");
  }

  // The number in each cell, if cells are large enough.
  paintNumbers() {
    const { left, top, across, down } = this.layout;
    if (across < 20 || down < 16) return;
    const colour = colours(this.palette, this.most);
    Object.assign(this.pen, { font: `11px ${LABEL_FONT.slice(5)}`, textAlign: "center", textBaseline: "middle" });
    const digits = this.most < 2 ? 2 : this.most < 100 ? 1 : 0;
    const longest = fixed(this.palette === "signed" ? -this.most : this.most, digits);
    if (this.pen.measureText(longest).width > across - 2) return;
    this.cells((row, column, value) => {
      if ((this.palette === "weights" && value < 0.005) || this.options.isMasked?.(row + this.window.top, column + this.window.left)) return;
      this.pen.fillStyle = value === -Infinity ? this.faint() : ink(colour(value));
      const text =
        value === -Infinity
          ? "−∞"
          : fixed(value, digits).replace(/^(−?)0\./, "$1.");
      this.pen.fillText(text, left + (column + 0.5) * across, top + (row + 0.5) * down + 0.5);
    });
  }

  cells(visit) {
    const { left, top, rows, columns } = this.window;
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        visit(row, column, this.options.values[(top + row) * this.options.columns + left + column]);
      }
    }
  }

  faint() {
    return getComputedStyle(this.canvas).getPropertyValue("--faint");
  }

  paintNames() {
    const { left, top, across, down } = this.layout;
    const style = getComputedStyle(this.canvas);
    const colour = (token) =>
      style.getPropertyValue(token?.startsWith("source") ? "--source" : token ? "--target" : "--muted");
    const { rowNames, columnNames, rowTokens = [], columnTokens = [] } = this.options;
    Object.assign(this.pen, { font: LABEL_FONT, textAlign: "right", textBaseline: "middle" });
    const rowStep = Math.ceil(12 / down);
    for (let row = 0; rowNames && row < this.window.rows; row += rowStep) {
      this.pen.fillStyle = colour(rowTokens[this.window.top + row]);
      this.pen.fillText(short(rowNames[this.window.top + row]), left - 7, top + (row + 0.5) * down, left - 8);
    }
    if (!columnNames || across < 8) return;
    const columnStep = Math.ceil(13 / across);
    this.pen.textAlign = "left";
    for (let column = 0; column < this.window.columns; column += columnStep) {
      this.pen.save();
      this.pen.translate(left + (column + 0.5) * across, top - 6);
      this.pen.rotate(-Math.PI / 2);
      this.pen.fillStyle = colour(columnTokens[this.window.left + column]);
      this.pen.fillText(short(columnNames[this.window.left + column]), 0, 0, top - 6);
      this.pen.restore();
    }
  }

  // A frame around the rows and columns of highlighted tokens, and a stronger one around the chosen cell.
  paintHighlight() {
    const { left, top, across, down } = this.layout;
    const { rowTokens = [], columnTokens = [] } = this.options;
    const style = getComputedStyle(this.canvas);
    this.pen.strokeStyle = style.getPropertyValue("--ink");
    const frame = (x, y, width, height, line) => {
      this.pen.lineWidth = line;
      this.pen.strokeRect(x, y, width, height);
    };
    const wide = across * this.window.columns;
    const high = down * this.window.rows;
    for (let row = 0; row < this.window.rows; row += 1) {
      if (isHighlighted(rowTokens[this.window.top + row])) frame(left, top + row * down, wide, down, 1);
    }
    for (let column = 0; column < this.window.columns; column += 1) {
      if (isHighlighted(columnTokens[this.window.left + column])) frame(left + column * across, top, across, high, 1);
    }
    if (!this.cursor) return;
    const row = this.cursor[0] - this.window.top;
    const column = this.cursor[1] - this.window.left;
    if (row < 0 || column < 0 || row >= this.window.rows || column >= this.window.columns) return;
    frame(left + column * across - 1, top + row * down - 1, across + 2, down + 2, 2.5);
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerdown", (event) => this.pick(this.under(event)));
    this.canvas.addEventListener("keydown", (event) => this.walk(event));
    this.canvas.addEventListener("pointerleave", () => highlight());
  }

  under(event) {
    if (!this.layout) return null; // not painted yet
    const { left, top, across, down } = this.layout;
    const column = Math.floor((event.offsetX - left) / across);
    const row = Math.floor((event.offsetY - top) / down);
    if (row < 0 || column < 0 || row >= this.window.rows || column >= this.window.columns) return null;
    return [row + this.window.top, column + this.window.left];
  }

  point(cell) {
    if (!cell || (this.cursor && cell[0] === this.cursor[0] && cell[1] === this.cursor[1])) return;
    this.cursor = cell;
    const [row, column] = cell;
    const { rowTokens = [], columnTokens = [], onpoint } = this.options;
    highlight(rowTokens[row], columnTokens[column]);
    this.paint();
    this.description.textContent = this.describe(row, column);
    onpoint?.(row, column);
  }

  pick(cell) {
    if (!cell) return;
    this.point(cell);
    this.options.onpick?.(...cell);
  }

  describe(row, column) {
    const { rowNames, columnNames, cellNames = columnNames, values, columns } = this.options;
    const names = [rowNames?.[row] ?? `row ${row}`, cellNames?.[column] ?? `column ${column}`];
    return `${names.join("  ×  ")}   ${number(values[row * columns + column], 4)}`;
  }

  walk(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter") return this.cursor && this.pick(this.cursor);
    if (event.key === "+" || event.key === "-") return this.zoom(event.key === "+" ? 0.5 : 2);
    if (!steps[event.key]) return undefined;
    event.preventDefault();
    const [row, column] = this.cursor ?? [-steps[event.key][0], -steps[event.key][1]];
    const within = (value, most) => Math.max(0, Math.min(most - 1, value));
    const [down, right] = steps[event.key];
    this.point([within(row + down, this.options.rows), within(column + right, this.options.columns)]);
    say(this.describe(...this.cursor));
    return undefined;
  }

  // Show fewer cells around the cursor, or more.
  zoom(factor) {
    const { rows, columns } = this.options;
    const [row, column] = this.cursor ?? [0, 0];
    const size = (now, all) => Math.max(Math.min(8, all), Math.min(all, Math.round(now * factor)));
    const start = (centre, shown, all) => Math.max(0, Math.min(all - shown, centre - (shown >> 1)));
    const shownRows = size(this.window.rows, rows);
    const shownColumns = size(this.window.columns, columns);
    this.window = {
      rows: shownRows,
      columns: shownColumns,
      top: start(row, shownRows, rows),
      left: start(column, shownColumns, columns),
    };
    this.paint();
  }

  caption() {
    this.description = make("output", { class: "cell" }, "\u00a0");
    const { rows, columns } = this.options;
    const zooms = [
      make(
        "button",
        { type: "button", title: "Zoom in (+)", "aria-label": "Zoom in", onclick: () => this.zoom(0.5) },
        "+",
      ),
      make("button", { type: "button", title: "Zoom out (−)", "aria-label": "Zoom out", onclick: () => this.zoom(2) }, "−"),
    ];
    const crowded = rows > 40 || columns > 40;
    return make("div", { class: "caption" }, this.description, crowded && make("span", { class: "zooms" }, zooms));
  }

  legend() {
    const colour = colours(this.palette, this.most);
    const ends = this.palette === "signed" ? [-this.most, 0, this.most] : [0, this.most];
    const stops = Array.from({ length: 25 }, (_, i) => ends[0] + (i / 24) * (ends.at(-1) - ends[0]));
    const bar = make(
      "i",
      { class: "ramp" },
      stops.map((value) => make("b", { style: { background: css(colour(value)) } })),
    );
    return make("div", { class: "legend", "aria-hidden": true }, number(ends[0], 2), bar, number(ends.at(-1), 2));
  }
}

function short(name) {
  const text = String(name ?? "");
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}
