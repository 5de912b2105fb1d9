// Pointing at a token highlights it wherever it appears. A token is "source:3" or "target:0".

const painters = new Set();
let highlighted = new Set();

export function isHighlighted(token) {
  return highlighted.has(token);
}

export function highlight(...tokens) {
  const wanted = new Set(tokens.filter(Boolean));
  if (wanted.size === highlighted.size && [...wanted].every((token) => highlighted.has(token))) return;
  highlighted = wanted;
  for (const element of document.querySelectorAll("[data-token]")) {
    element.classList.toggle("lit", highlighted.has(element.dataset.token));
  }
  for (const painter of painters) {
    if (painter.element.isConnected) painter.paint();
    else painters.delete(painter);
  }
}

// Repaint a canvas when other tokens are highlighted, as long as it is on the page.
export function repaintOnHighlight(element, paint) {
  painters.add({ element, paint });
}

document.addEventListener("pointerover", (event) => {
  const token = event.target.closest?.("[data-token]");
  if (token) highlight(token.dataset.token, token.dataset.also);
  else if (!event.target.closest?.("canvas")) highlight();
});
document.addEventListener("focusin", (event) => {
  const token = event.target.closest?.("[data-token]");
  if (token) highlight(token.dataset.token, token.dataset.also);
});
