// A view twice, side by side: before and after the changes, for two runs, or for two texts; or the difference of the two.

import { make } from "./dom.js";
import { go } from "./state.js";

export async function drawBeside(view, first, second, runs) {
  const { state } = first;
  const isDifference = state.difference === "yes" && view.differs;
  const parts = isDifference ? await difference(view, first, second) : await sideBySide(view, first, second, runs);
  return make("div", { class: "stacked" }, view.differs && choice(isDifference), parts);
}

function choice(isDifference) {
  const button = (title, difference) =>
    make(
      "button",
      {
        type: "button",
        "aria-pressed": String(isDifference === (difference === "yes")),
        onclick: () => go({ difference }),
      },
      title,
    );
  return make("div", { class: "row tight how" }, button("Side by side", ""), button("Difference", "yes"));
}

const NAMES = {
  before: "after the change minus before it",
  run: "the first run minus the second",
  text: "the first text minus the second",
};

// One picture: the cells of the first minus those of the second, if both have as many.
async function difference(view, first, second) {
  const sides = Object.keys(first.trace.tokens);
  const same = sides.every((side) => first.trace.tokens[side].length === second.trace.tokens[side]?.length);
  if (!same || first.run.heads !== second.run.heads || first.run.d_model !== second.run.d_model)
    return make("p", { class: "note" }, "The two have different numbers of tokens or channels, so there is no difference to draw.");
  const note = `Difference: ${NAMES[first.state.beside]}. Green: larger, purple: smaller.`;
  return [make("p", { class: "note" }, note), await view.draw({ ...first, minus: second.trace })];
}

async function sideBySide(view, first, second, runs) {
  const { state } = first;
  const titles = {
    before: ["After", "Before"],
    run: [runs[0].name, runs[1]?.name],
    text: [first.trace.text, second.trace.text],
  }[state.beside];
  const sides = [
    [titles[0], first.trace, await view.draw(first)],
    [titles[1], second.trace, await view.draw(second)],
  ];
  if (state.beside === "before") sides.reverse();
  const same = first.trace.target === second.trace.target;
  const sections = sides.map(([title, trace, content]) =>
    make(
      "section",
      { "aria-label": title },
      make("h2", { class: "which" }, [title, same ? "" : trace.target].filter(Boolean).join(": ")),
      content,
    ),
  );
  return make("div", { class: "beside" }, sections);
}
