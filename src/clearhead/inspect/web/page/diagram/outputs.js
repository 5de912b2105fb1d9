// What comes out at the top of the diagram: the next token, a masked one, the classes, or the vector of the text.

import { make, percent, word } from "../dom.js";
import { thumbnail } from "../thumbnail.js";

// The heading and the bars for the chosen position. `found` is the answer of the server.
export function drawOutputs({ trace, run }, found, position) {
  if (trace.classes) return [title("The probabilities of the classes"), bars(trace.classes)];
  if (run.head === "embedding") return [title("The text as one vector"), vector(found.boxes.pooled)];
  const side = trace.tokens.target ? "target" : "source";
  const candidates = found.outputs[position - found.first[side]] ?? [];
  const { piece } = trace.tokens[side][position];
  const said = make("b", { class: side }, word(piece));
  const heading = side === "target" ? title("After ", said, " comes") : title("In place of ", said);
  return [heading, bars(candidates.slice(0, 5), written(trace, side, position))];
}

// The token that follows in what is shown, which was therefore chosen.
function written(trace, side, position) {
  return side === "target" ? trace.tokens[side][position + 1]?.piece : undefined;
}

function likeliest(rows) {
  return rows.reduce((best, row) => (row[1] > best[1] ? row : best))[0];
}

function title(...content) {
  return make("h3", { class: "comes" }, content);
}

function bars(rows, chosen = likeliest(rows)) {
  return make(
    "div",
    { class: "chances" },
    rows.slice(0, 6).map(([name, probability]) =>
      make(
        "div",
        { class: `chance ${name === chosen ? "chosen" : ""}` },
        make("span", { class: "name" }, word(name)),
        make("i", {}, make("b", { style: { width: `${100 * probability}%` } })),
        make("output", {}, percent(probability)),
      ),
    ),
  );
}

function vector({ shape, data }) {
  return make(
    "div",
    { class: "whole-vector" },
    thumbnail({ rows: 1, columns: shape.at(-1), values: data, palette: "signed", label: "pooled" }),
  );
}
