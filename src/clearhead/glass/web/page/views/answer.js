// The output of an encoder-only model for a whole text: classes, or a vector.

import { make, number } from "../dom.js";
import { tensor } from "../data.js";
import { kindOf } from "../kinds.js";
import { lengthOf, tensorMatrix } from "../show.js";
import { classBars } from "./overview.js";

export const answer = {
  title: "Answer",
  short: "The output for the whole text",
  lead: "The vectors of all tokens are pooled into one for the whole text. The output is computed from it.",
  fits: (run) => run.head !== "vocabulary",
  tensor: ({ run }) => (run.head === "classes" ? "head.logits" : "pooled"),
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
        ),
      make(
        "section",
        { class: "card" },
        make("h2", {}, "The text as one vector"),
        picture,
        make("p", { class: "note" }, `${kindOf(trace, "pooled").brief}; its norm is ${number(length, 2)}.`),
      ),
    ].filter(Boolean);
  },
};

async function logits(context) {
  return tensorMatrix(context, "head.logits", { down: "logits", across: "class", cellNames: context.run.labels });
}
