// The text beside the diagram: what the model reads, and what it writes, word by word.

import { make, percent } from "../dom.js";

// {element, show(position), start, what}: `show` hides the words after a position, `start` is where playing begins.
export function reading({ trace, run }) {
  if (run.family === "encoder-decoder") return translation(trace);
  if (run.family === "decoder-only") return story(trace);
  const output = { classes: "class", embedding: "vector", vocabulary: "prediction" }[run.head];
  const element = make("p", { class: sizeOf(trace) }, make("span", { class: "source" }, trace.text));
  return { element, show: () => {}, start: 0, what: `shows how the ${output} is computed` };
}

function translation(trace) {
  const words = spans(trace, 1);
  const element = make(
    "p",
    { class: sizeOf(trace) },
    make("span", { class: "source" }, trace.text),
    make("span", { class: "arrow", "aria-hidden": true }, " → "),
    make("span", { class: "target" }, words),
  );
  return { element, show: shower(words, 1), start: 0, what: "writes the target word by word" };
}

function story(trace) {
  const { target } = trace.tokens;
  const written = trace.written ?? 0;
  const words = spans(trace, target.length - written);
  const element = make(
    "p",
    { class: sizeOf(trace) },
    make("span", {}, trace.text),
    make("span", { class: "target" }, words),
  );
  const start = target.length - written - 1;
  return { element, show: shower(words, start + 1), start, what: "continues the text word by word" };
}

// Long texts are smaller.
function sizeOf({ text, target }) {
  return text.length + target.length > 110 ? "reading long" : "reading";
}

// The words that were written; the less sure the model was of one, the stronger is the line under it.
function spans({ tokens: { target }, guesses }, first) {
  return target.slice(first).map(({ piece }, i) => {
    const guess = guesses[i + first - 1];
    const own = guess?.piece === piece; // else it was given
    const style = { "--doubt": own ? 1 - guess.probability : 0 };
    return make("span", { title: own ? percent(guess.probability) : "given", style }, piece);
  });
}

function shower(words, first) {
  return (position) => {
    for (const [i, word] of words.entries()) {
      word.className = i + first > position ? "unwritten" : i + first === position ? "fresh" : "";
    }
  };
}
