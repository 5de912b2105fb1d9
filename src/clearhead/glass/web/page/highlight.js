// Hover a token anywhere and it lights up everywhere. A token is "source:3" or "target:0".

const painters = new Set();
let lit = new Set();

export function isLit(token) {
  return lit.has(token);
}

export function light(...tokens) {
  const wanted = new Set(tokens.filter(Boolean));
  if (wanted.size === lit.size && [...wanted].every((token) => lit.has(token))) return;
  lit = wanted;
  for (const element of document.querySelectorAll("[data-token]")) {
    element.classList.toggle("lit", lit.has(element.dataset.token));
  }
  for (const painter of painters) {
    if (painter.element.isConnected) painter.paint();
    else painters.delete(painter);
  }
}

// A canvas repaints itself when the light moves, for as long as it is on the page.
export function paintWithLight(element, paint) {
  painters.add({ element, paint });
}

document.addEventListener("pointerover", (event) => {
  const token = event.target.closest?.("[data-token]");
  if (token) light(token.dataset.token, token.dataset.also);
  else if (!event.target.closest?.("canvas")) light();
});
document.addEventListener("focusin", (event) => {
  const token = event.target.closest?.("[data-token]");
  if (token) light(token.dataset.token, token.dataset.also);
});
