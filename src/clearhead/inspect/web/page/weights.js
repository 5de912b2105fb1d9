// A form that multiplies a row of a weight matrix by a factor.

import { make } from "./dom.js";
import { toggle } from "./changes.js";

export function rowEditor(name, [rows]) {
  const row = make("input", { type: "number", min: 0, max: rows - 1, value: 0, "aria-label": "Row" });
  const factor = make("input", { type: "number", step: "any", value: 0, "aria-label": "Factor" });
  const form = make(
    "form",
    { class: "row row-editor" },
    make("label", {}, "Multiply row"),
    row,
    make("label", {}, "of ", make("code", { title: name }, name.split(".").slice(-3).join(".")), " by"),
    factor,
    make("button", { class: "warn" }, "Change"),
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    toggle(name, { kind: "scale", value: Number(factor.value), at: { row: [Number(row.value)] } });
  };
  return form;
}
