// The output of an encoder-only model for a whole text: classes, or a vector.

import { later, make, number } from "../dom.js";
import { ask, tensor } from "../data.js";
import { kindOf } from "../kinds.js";
import { dot, lengthOf, tensorMatrix } from "../show.js";
import { salient } from "./lens.js";
import { classBars } from "./overview.js";

export const answer = {
  title: "Answer",
  short: "The output for the whole text",
  lead: ({ head }) =>
    head === "classes"
      ? "The vectors of all tokens are pooled into one for the whole text. The probabilities of the classes are computed from it."
      : "The vectors of all tokens are pooled into one for the whole text: the output of this model. Texts of similar meaning should have vectors of similar directions; Compare shows it for two texts.",
  fits: (run) => run.head !== "vocabulary",
  tensor: ({ run }) => (run.head === "classes" ? "head.logits" : "pooled"),
  once: ({ trace, other }) => (other ? [later(similarity(trace, other), (found) => found)] : []),
  async draw(context) {
    const { trace } = context;
    const pooled = await tensor(trace.id, "pooled");
    const picture = await tensorMatrix(context, "pooled", {
      found: pooled,
      down: "text",
      across: "channel",
      height: 60,
    });
    const length = lengthOf(pooled.data);
    return [
      trace.classes &&
        make(
          "section",
          { class: "card" },
          make("h2", {}, "The classes"),
          classBars(trace.classes),
          await logits(context),
          later(reasons(context), (found) => found),
        ),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "The text as one vector"),
        picture,
        make("p", { class: "note" }, `${kindOf(trace, "pooled").brief}; its length is ${number(length, 2)}.`),
      ),
    ].filter(Boolean);
  },
};

// The words that made the likeliest class.
async function reasons({ trace }) {
  const best = trace.classes.reduce((most, [, p], i) => (p > trace.classes[most][1] ? i : most), 0);
  const found = await ask("saliency", { trace: trace.id, token: 0, choice: best });
  return salient(trace, found, `Words for (green) and against (purple) “${trace.classes[best][0]}”: gradient × input`);
}

// How similar the vectors of two texts, or of one text in two models of the same width, are.
async function similarity(trace, other) {
  const [one, two] = await Promise.all([tensor(trace.id, "pooled"), tensor(other.id, "pooled")]);
  if (one.data.length !== two.data.length) return make("p", { class: "note" }, "The two vectors have different lengths.");
  const cosine = dot(one.data, two.data) / (lengthOf(one.data) * lengthOf(two.data));
  return make(
    "section",
    { class: "card cosine" },
    make("h2", {}, "How similar the two vectors are"),
    make("p", {}, "Their cosine is ", make("strong", { class: "value" }, number(cosine, 3)), ": 1 means the same direction, 0 a right angle."),
  );
}

async function logits(context) {
  return tensorMatrix(context, "head.logits", { down: "logits", across: "class", cellNames: context.run.labels });
}
