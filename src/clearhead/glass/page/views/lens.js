// The logit lens: what the model would say if it stopped after each layer; and what made a logit as high as it is.

import { later, make, number, percent, shown } from "../dom.js";
import { ask } from "../data.js";
import { colours, css, ink } from "../colour.js";
import { go } from "../state.js";
import { whereIs } from "../inspector.js";
import { pickedToken, stationTitle } from "../show.js";
import { token } from "../tokens.js";

const AT_ONCE = 16;

export const lens = {
  title: "Logit lens",
  short: "What each layer would already say, and why",
  lead: "Read the stream after each layer as if it were the last one. Early layers still guess; watch where the answer appears.",
  whole: true,
  uncertain: true,
  fits: (run) => run.head !== "embedding",
  tensor: () => "head.logits",
  async draw(context) {
    const { trace, run } = context;
    const side = trace.tokens.target ? "target" : "source";
    const words = run.head === "vocabulary";
    const at = pickedToken(context, side);
    const first = words ? Math.floor(at / AT_ONCE) * AT_ONCE : 0;
    const { length } = trace.tokens[side];
    const layers = later(ask("lens", { trace: trace.id, first }), (found) =>
      table(context, side, found.layers, first, words),
    );
    const why = words && !run.head_dense && later(reasons(context, at), (found) => found);
    return [
      make(
        "section",
        { class: "card" },
        words && length > AT_ONCE && pages(first, length),
        make("div", { class: "scroll" }, layers),
      ),
      why && make("section", { class: "card" }, why),
    ].filter(Boolean);
  },
};

function pages(first, length) {
  const starts = Array.from({ length: Math.ceil(length / AT_ONCE) }, (_, i) => i * AT_ONCE);
  const choice = make("select", {
    "aria-label": "Which tokens",
    onchange: (event) => go({ token: Number(event.target.value) }),
  });
  choice.append(
    ...starts.map((start) =>
      make(
        "option",
        { value: start, selected: start === first },
        `tokens ${start} to ${Math.min(start + AT_ONCE, length) - 1}`,
      ),
    ),
  );
  return make("div", { class: "row" }, choice);
}

function table({ trace }, side, layers, first, words) {
  const colour = colours("weights", 1);
  const header = words
    ? layers[0].cells.map((_, i) => make("th", {}, token(trace, side, first + i)))
    : [make("th", {}, "sentence")];
  const rows = layers.toReversed().map(({ name, cells }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name.includes("blocks") ? `after ${stationTitle(name).split(",")[0]}` : "embedding"),
      cells.map((best, i) => {
        const [[piece, probability]] = best;
        const fill = colour(probability);
        const others = best.map(([other, p]) => `${shown(other)} ${percent(p)}`).join("\n");
        const properties = {
          type: "button",
          title: others,
          style: { background: css(fill), color: ink(fill) },
          onclick: () => go({ token: first + i }),
        };
        return make("td", {}, make("button", properties, shown(piece), make("small", {}, percent(probability))));
      }),
    ),
  );
  return make(
    "table",
    { class: "lens" },
    make("thead", {}, make("tr", {}, make("th", {}), header)),
    make("tbody", {}, rows),
  );
}

// For the likeliest word at the place in question: the parts of the model, and the words read, that speak for it.
async function reasons({ trace, state }, at) {
  const { ids, words } = await ask("next", { trace: trace.id, token: at });
  const chosen = Math.max(0, ids.indexOf(state.choice));
  const choose = ids
    .slice(0, 6)
    .map((id, i) =>
      make(
        "button",
        { type: "button", "aria-pressed": String(i === chosen), onclick: () => go({ choice: id }) },
        shown(words[i]),
      ),
    );
  const title = make("div", { class: "row" }, make("h2", {}, "Why this word?"), choose);
  const found = await ask("why", { trace: trace.id, token: at, choice: ids[chosen] }).catch((error) => ({
    error: error.message,
  }));
  if (found.error) return make("div", { class: "stacked" }, title, make("p", { class: "note" }, found.error));
  return make(
    "div",
    { class: "stacked" },
    title,
    make(
      "p",
      { class: "note" },
      `Its logit is ${number(found.logit, 2)}: the sum of what every head, layer and embedding adds. These count most.`,
    ),
    parts(found),
    Object.keys(found.saliency).length > 0 && salient(trace, found.saliency),
  );
}

function parts({ parts: list }) {
  const most = Math.max(...list.map(([, value]) => Math.abs(value)));
  return make(
    "div",
    { class: "terms wide" },
    list.map(([name, value]) => {
      const [path] = name.split(" head ");
      const open = make("button", { type: "button", class: "plain", onclick: () => go(whereIs(path)) }, name);
      return make(
        "div",
        { class: "term" },
        open,
        make("i", { class: value < 0 ? "minus" : "plus", style: { "--part": Math.abs(value) / most } }),
        make("output", {}, number(value, 2)),
      );
    }),
  );
}

// Gradient × input: the stronger a token is coloured, the more its embedding speaks for the word.
function salient(trace, saliency) {
  const most = Math.max(...Object.values(saliency).flat().map(Math.abs)) || 1;
  const colour = colours("signed", most);
  const strips = Object.entries(saliency).map(([side, values]) =>
    make(
      "div",
      { class: "row tight" },
      values.slice(0, 200).map((value, index) => {
        const chip = token(trace, side, index, { title: number(value, 3) });
        chip.style.background = css(colour(value));
        chip.style.color = ink(colour(value));
        return chip;
      }),
    ),
  );
  return make(
    "div",
    { class: "salient" },
    make("h3", {}, "Which tokens speak for it (orange) and against it (blue): gradient × input"),
    strips,
  );
}
