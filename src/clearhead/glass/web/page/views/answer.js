// What an encoder-only model says of a whole sentence: a class, or a vector.

import { make, number } from "../dom.js";
import { tensor } from "../data.js";
import { kindOf } from "../kinds.js";
import { lengthOf, tensorMatrix } from "../show.js";
import { classBars } from "./overview.js";

export const answer = {
  title: "Answer",
  short: "What the model says of the whole sentence",
  lead: "All tokens' vectors become one that stands for the sentence. From it comes the answer.",
  fits: (run) => run.head !== "vocabulary",
  tensor: ({ run }) => (run.head === "classes" ? "head.logits" : "pooled"),
  async draw(context) {
    const { trace } = context;
    const pooled = await tensor(trace.id, "pooled");
    const picture = await tensorMatrix(context, "pooled", {
      found: pooled,
      down: "sentence",
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
        ),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "The sentence as one vector"),
        picture,
        make("p", { class: "note" }, `${kindOf(trace, "pooled").brief}; its length is ${number(length, 2)}.`),
      ),
    ].filter(Boolean);
  },
};

async function logits(context) {
  return tensorMatrix(context, "head.logits", { down: "logits", across: "class", cellNames: context.run.labels });
}
