// Tokens as chips, and the rows of them at the top of the page.

import { make, shown } from "./dom.js";
import { go } from "./state.js";

export const TITLES = { source: "Source", target: "Target" };

// The chip of one token, e.g. token(trace, "source", 3); it is highlighted wherever it appears.
export function token(trace, side, index, properties = {}) {
  const { piece, id, special } = trace.tokens[side][index];
  const classes = ["token", side, special && "special", properties.class].filter(Boolean).join(" ");
  return make(
    "button",
    {
      type: "button",
      title: `token ${index}, id ${id}`,
      ...properties,
      class: classes,
      data: { token: `${side}:${index}` },
    },
    shown(piece),
  );
}

export function names(trace, side) {
  return trace.tokens[side].map(({ piece }) => shown(piece));
}

export function tokenKeys(trace, side) {
  return trace.tokens[side].map((_, index) => `${side}:${index}`);
}

// The rows of tokens; if a view is about one token, that one is framed, and others of its side can be chosen.
export function drawStrips(element, trace, picked) {
  const MOST = 400; // chips; more would make the page slow
  const drawnFor = `${trace.id} ${picked}`;
  if (element.dataset.drawnFor === drawnFor) return;
  element.dataset.drawnFor = drawnFor;
  const strips = Object.entries(trace.tokens).map(([side, tokens]) => {
    const title = trace.tokens.source && trace.tokens.target ? TITLES[side] : "Tokens";
    const chips = tokens.slice(0, MOST).map((_, index) =>
      token(trace, side, index, {
        class: picked === `${side}:${index}` && "picked",
        onclick: picked.startsWith(side) && (() => go({ token: index })),
      }),
    );
    const rest = tokens.length > MOST && make("small", {}, `and ${tokens.length - MOST} more`);
    return make("div", { class: "strip" }, make("h3", {}, title), chips, rest);
  });
  element.replaceChildren(...strips);
}
