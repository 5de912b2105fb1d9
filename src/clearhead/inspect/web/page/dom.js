// All elements are created here. Text is only ever set as text, so nothing that a model or a user wrote can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, of] of Object.entries(value)) element.style.setProperty(key, of);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// make("button", {class: "chip", onclick}, "text", another): an element with its children.
export function make(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function drawn(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

// A placeholder for content that takes longer to compute; replaced when it is there.
export function later(promise, draw) {
  const place = make("div", { class: "waiting", "aria-busy": "true" }, "Computing …");
  promise
    .then(draw)
    .catch((error) => make("p", { class: "note" }, error.message))
    .then((content) => place.replaceWith(content));
  return place;
}

// A picture that is drawn for the width that it has, and again when that changes, so that its letters keep their size.
export function fitted(draw) {
  let drawnFor = 0;
  const box = make("div", { class: "fitted" });
  const redraw = (width) => {
    if (!width || width === drawnFor) return;
    drawnFor = width;
    box.replaceChildren(draw(width));
  };
  redraw(460);
  new ResizeObserver(() => redraw(Math.floor(box.clientWidth))).observe(box);
  return box;
}

// A token with visible whitespace: a space becomes a middle dot, one that must not break a box, a line end an arrow.
export function shown(piece) {
  return piece.replace(/ /g, "·").replace(/[\u00a0\u202f]/g, "⍽").replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
}

// The same without the dot of a space before it.
export function word(piece) {
  return shown(piece).replace(/^·(?=.)/, "");
}

export function number(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const written = size !== 0 && (size < 10 ** -digits || size >= 1e5) ? value.toExponential(2) : value.toFixed(digits);
  return written.replace("-", "−");
}

// With a fixed number of digits, for columns; never "−0".
export function fixed(value, digits = 2) {
  return value
    .toFixed(digits)
    .replace(/^-(0\.?0*)$/, "$1")
    .replace("-", "−");
}

export function percent(value) {
  if (value < 0.0005) return "< 0.1 %";
  return value >= 0.9995 ? "100 %" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;
}

export function say(text) {
  document.getElementById("live").textContent = text;
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
export const phone = matchMedia("(max-width: 760px)");
