// The logit lens: what the model would predict if it stopped after each layer; and the contributions to a logit.

import { later, make, number, percent, shown } from "../dom.js";
import { ask } from "../data.js";
import { colours, css, ink } from "../colour.js";
import { go } from "../state.js";
import { partTitle, whereIs } from "../kinds.js";
import { lastSide, pickedToken } from "../show.js";
import { token } from "../tokens.js";

const AT_ONCE = 12; // tokens: as many as fit

export const lens = {
  title: "Logit lens",
  short: "What each layer would predict, and why",
  lead: "The head is applied to the stream after each layer, as if it were the last. It shows in which layer the final prediction appears.",
  whole: true,
  uncertain: true,
  fits: (run) => run.head !== "embedding",
  side: ({ trace }) => !trace.classes && lastSide(trace),
  draw(context) {
    const { trace, run } = context;
    const side = lastSide(trace);
    const words = run.head === "vocabulary";
    const at = words ? pickedToken(context, side) : 0;
    const { length } = trace.tokens[side];
    const first = Math.floor(at / AT_ONCE) * AT_ONCE;
    const positions = Array.from({ length: words ? Math.min(AT_ONCE, length - first) : 1 }, (_, i) => first + i);
    const { layers, filled } = table(context, side, positions, at);
    return [
      make(
        "section",
        { class: "card" },
        words && length > AT_ONCE && pages(first, length),
        make("div", { class: "scroll" }, layers),
      ),
      words && !run.head_dense && make("section", { class: "card" }, later(reasons(context, at, filled), (found) => found)),
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

// One row for each layer, the last at the top; columns are filled one by one, the chosen token's first.
function table({ trace, run }, side, positions, at) {
  const words = run.head === "vocabulary";
  const header = positions.map((position) => make("th", {}, words ? token(trace, side, position) : "text"));
  const names = ["embedding", ...Array.from({ length: run.stacks.at(-1).layers }, (_, i) => `after block ${i}`)];
  const cells = names.map(() => new Map(positions.map((position) => [position, make("td", {})])));
  const rows = names.map((name, i) => make("tr", {}, make("th", { scope: "row" }, name), [...cells[i].values()]));
  const layers = make(
    "table",
    { class: "lens", "aria-busy": "true" },
    make("thead", {}, make("tr", {}, make("th", {}), header)),
    make("tbody", {}, rows.toReversed()),
  );
  const fill = async (position) => {
    const answered = await ask("lens", { trace: trace.id, token: position });
    answered.layers.forEach(({ best }, i) => cells[i].get(position).replaceChildren(guess(best, position)));
  };
  const filled = Promise.all([at, ...positions.filter((position) => position !== at)].map(fill)).then(
    () => layers.removeAttribute("aria-busy"),
    (error) => layers.replaceWith(make("p", { class: "note" }, error.message)),
  );
  return { layers, filled };
}

function guess(best, position) {
  const [[piece, probability]] = best;
  const fill = colours("weights", 1)(probability);
  const properties = {
    type: "button",
    title: best.map(([other, p]) => `${shown(other)} ${percent(p)}`).join("\n"),
    style: { background: css(fill), color: ink(fill) },
    onclick: () => go({ token: position }),
  };
  return make("button", properties, shown(piece), make("small", {}, percent(probability)));
}

// For the likeliest tokens at the chosen position: the contributions of the parts of the model, and of the tokens read.
async function reasons({ trace, state }, at, filled) {
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
  const title = make("div", { class: "row" }, make("h2", {}, "Why this token?"), choose);
  const asked = { trace: trace.id, token: at, choice: ids[chosen] };
  const found = await ask("why", asked).catch((error) => ({ error: error.message }));
  if (found.error) return make("div", { class: "stacked" }, title, make("p", { class: "note" }, found.error));
  return make(
    "div",
    { class: "stacked" },
    title,
    make(
      "p",
      { class: "note" },
      `Its logit is ${number(found.logit, 2)}: the sum of the contributions of every head, layer and embedding. These are the largest.`,
    ),
    parts(trace, found),
    later(
      filled.then(() => ask("saliency", asked)), // gradients take longest, so they come last
      (answered) => salient(trace, answered),
    ),
  );
}

function parts(trace, { parts: list }) {
  const most = Math.max(...list.map(([, value]) => Math.abs(value)));
  return make(
    "div",
    { class: "terms wide" },
    list.map(([name, value]) => {
      const [path] = name.split(" head ");
      const open = make("button", { type: "button", class: "plain", title: name, onclick: () => go(whereIs(trace, path)) }, partTitle(name));
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

// Gradient × input: the stronger the colour, the larger the effect of a token's embedding on the logit.
export function salient(trace, saliency, title = "Tokens that raise (green) or lower (purple) its logit: gradient × input") {
  if (!Object.keys(saliency).length) return "";
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
    make("h3", {}, title),
    strips,
  );
}
