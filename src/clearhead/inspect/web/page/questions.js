// The questions of the tour. Each returns the question, its options, which one is right, what to say then, and where it can
// be seen: computed from the trace of the finished model.

import { ask, tensor } from "./data.js";
import { number, percent, shown } from "./dom.js";
import { importanceOf, tell } from "./insight.js";
import { sideOf, titleOf } from "./kinds.js";
import { meanOverHeads } from "./show.js";

// The right option among some others, in an order that does not give it away.
function among(right, others) {
  const options = [...new Set([right, ...others])].slice(0, 4).sort((a, b) => a.localeCompare(b));
  return { options, right: options.indexOf(right) };
}

const piece = (token) => shown(token.piece);

export async function specialToken({ trace }) {
  const [tokens] = Object.values(trace.tokens);
  const special = tokens.find((token) => token.special);
  if (!special) return null;
  const plain = tokens.filter((token) => !token.special).map(piece);
  return {
    question: "Which of these tokens is not in your text?",
    ...among(piece(special), plain),
    shows: `${piece(special)} is added by clearhead, as in training. The small dot before a token is a space.`,
    lights: "#strips .special",
  };
}

// The word whose nearest neighbour is most similar to it, and is not the same word with a capital or without its space.
function mostSimilar(tokens, near) {
  const spelled = (word) => word.trim().toLowerCase();
  const differs = ({ id, piece: word }) => spelled(near[id][0][0]) !== spelled(word);
  const words = tokens.filter((token) => /\p{L}{3}/u.test(token.piece) && differs(token));
  const cosine = ({ id }) => near[id][0][1];
  return (words.length ? words : tokens).toSorted((a, b) => cosine(b) - cosine(a))[0];
}

export function nearestToken(stack) {
  return async ({ trace }) => {
    const near = await ask("near", { trace: trace.id, stack });
    const tokens = trace.tokens[sideOf(stack)].filter(({ special, id }) => !special && near[id]?.length);
    const token = mostSimilar(tokens, near);
    if (!token) return null;
    const [[best, cosine]] = near[token.id];
    const others = tokens.filter(({ id }) => id !== token.id).map(({ id }) => shown(near[id].at(-1)[0]));
    return {
      question: `Which token has the vector most similar to that of “${piece(token)}”?`,
      ...among(shown(best), others),
      shows: `“${shown(best)}”: the cosine of the two vectors is ${number(cosine, 2)}. Nobody told the model; it learned from examples alone.`,
      lights: "#stage .near",
    };
  };
}

export function shuffledPositions(stack) {
  return async ({ run, trace }) => {
    const changes = { [`${stack}.position`]: [{ kind: "shuffle", value: 1, at: {} }] };
    const query = { run: 0, text: trace.text, target: "", snapshot: "", changes: JSON.stringify(changes) };
    const { parts, writes, wrote } = await ask("effect", { trace: (await ask("trace", query)).id });
    const fall = parts.reduce((worst, part) => (part.after / part.before < worst.after / worst.before ? part : worst));
    const isSame = fall.after > 0.5;
    const [before, after] = [percent(fall.before), percent(fall.after)];
    const said = `P(${shown(fall.word)}) ${before === after ? `stays at ${after}` : `goes from ${before} to ${after}`}`;
    return {
      question: "We shuffle the positions. Is the answer still right?",
      options: ["Yes, words are enough", "No, it needs the order"],
      right: isSame ? 0 : 1,
      shows: `${said}${writes !== undefined && writes !== wrote && run.family === "encoder-decoder" ? `, and it would write “${writes}”` : ""}.`,
      reveal: { changes, beside: "before" },
      lights: "#changes .effect",
    };
  };
}

export function attendedToken(stack) {
  return async ({ trace }) => {
    const tokens = trace.tokens[sideOf(stack)];
    const row = Math.min(2, tokens.length - 1);
    const { data } = await tensor(trace.id, `${stack}.blocks.0.attention.weights`, `0,${row}`);
    const best = data.indexOf(Math.max(...data));
    const others = tokens.slice(0, stack === "decoder" ? row + 1 : undefined).map(piece);
    return {
      question: `In this head, to which token does “${piece(tokens[row])}” attend most?`,
      ...among(piece(tokens[best]), others),
      shows: `“${piece(tokens[best])}” gets ${percent(data[best])} of its attention. Point at a cell to see how the number was computed.`,
      reveal: { token: row },
      lights: "#stage .chosen-stage .matrix",
    };
  };
}

export async function mostImportant({ run, trace }) {
  if (!trace.quick) return null;
  const names = run.stacks.flatMap(({ name, layers, sublayers }) =>
    sublayers
      .filter((part) => part !== "feed_forward")
      .flatMap((part) => Array.from({ length: layers }, (_, layer) => `${name}.blocks.${layer}.${part}`)),
  );
  const found = [];
  for (const name of names) found.push({ name, change: (await importanceOf(trace, name)).whole });
  const best = found.reduce((most, each) => (each.change < most.change ? each : most));
  const title = (name) => {
    const [stack, , layer, part] = name.split(".");
    return `${stack}, block ${layer}: ${titleOf(part).toLowerCase()}`;
  };
  const others = found.toSorted((a, b) => a.change - b.change).slice(1, 4).map(({ name }) => title(name));
  return {
    question: "On which attention, all its heads together, does the answer depend most?",
    ...among(title(best.name), others),
    shows: `${tell(best.change, trace)}. Single heads often matter little, because others do the same.`,
    lights: `#stage .layer:has([data-attention="${best.name}"])`,
  };
}

// The mean norm of the vectors of a tensor.
async function meanNorm(trace, name) {
  const { shape, data } = await tensor(trace.id, name);
  let sum = 0;
  for (let row = 0; row < shape[0]; row += 1) sum += Math.hypot(...data.subarray(row * shape[1], (row + 1) * shape[1]));
  return sum / shape[0];
}

export function added(stack) {
  return async ({ run, trace }) => {
    const [before] = run.stacks.find(({ name }) => name === stack).stream;
    const x = await meanNorm(trace, before);
    const f = await meanNorm(trace, `${stack}.blocks.0.attention`);
    return {
      question: "Which is larger: the stream x, or what attention adds to it?",
      options: ["The stream x", "What attention adds"],
      right: x >= f ? 0 : 1,
      shows: `The vectors of x have a mean length of ${number(x, 1)}, those that are added ${number(f, 1)}. The sum keeps both.`,
      lights: "#stage .sum",
    };
  };
}

export function activeNeurons(stack) {
  return async ({ trace }) => {
    const { data } = await tensor(trace.id, `${stack}.blocks.0.feed_forward.inner`, "1");
    const share = data.reduce((count, value) => count + (value > 0), 0) / data.length;
    return {
      question: `About how many of the ${data.length} neurons are above 0 for the second token?`,
      options: ["fewer than 10 %", "10 to 40 %", "more than 40 %"],
      right: share < 0.1 ? 0 : share <= 0.4 ? 1 : 2,
      shows: `${percent(share)} of them. ${share < 0.25 ? "Few active neurons at a time make it easier to tell what each one is for." : "So many active neurons at a time share their work; it is hard to tell what each one is for."}`,
      lights: "#stage .most-active",
    };
  };
}

export function growing(stack) {
  return async ({ run, trace }) => {
    const norms = await ask("lengths", { trace: trace.id, stack });
    const mean = (name) => norms[name].reduce((a, b) => a + b, 0) / norms[name].length;
    const { stream } = run.stacks.find(({ name }) => name === stack);
    const [first, final] = [mean(stream[0]), mean(stream.at(-1))];
    const right = final > 1.1 * first ? 0 : final < 0.9 * first ? 2 : 1;
    return {
      question: "From the first layer to the last: do the vectors get longer?",
      options: ["Longer", "About the same", "Shorter"],
      right,
      shows: `Their mean length goes from ${number(first, 1)} to ${number(final, 1)}.`,
      lights: "#stage .matrix",
    };
  };
}

export function alignedToken({ layers }) {
  return async ({ trace }) => {
    const { target, source } = trace.tokens;
    const row = Math.min(1, target.length - 1);
    const weights = await tensor(trace.id, `decoder.blocks.${layers - 1}.cross_attention.weights`);
    const { columns, data } = meanOverHeads(weights);
    const mean = data.slice(row * columns, (row + 1) * columns);
    const best = mean.indexOf(Math.max(...mean));
    const following = target[row + 1] ?? trace.guesses[row];
    return {
      question: `To write “${shown(following.piece)}” after “${piece(target[row])}”, where does it look?`,
      ...among(piece(source[best]), source.map(piece)),
      shows: `At “${piece(source[best])}”: ${percent(mean[best])} of the attention, as a mean over the heads.`,
      lights: `#stage .alignment g[data-token="target:${row}"]`,
    };
  };
}

export function withoutCross({ layers }) {
  return async ({ trace }) => {
    const changes = { [`decoder.blocks.${layers - 1}.cross_attention`]: [{ kind: "scale", value: 0, at: {} }] };
    const query = { run: 0, text: trace.text, target: "", snapshot: "", changes: JSON.stringify(changes) };
    const { writes, wrote } = await ask("effect", { trace: (await ask("trace", query)).id });
    return {
      question: "What will it write without it?",
      options: ["The same sentence", "Something else"],
      right: writes === wrote ? 0 : 1,
      shows: writes === wrote ? `The same: “${writes}”.` : `“${writes}”, in place of “${wrote}”.`,
      reveal: { changes, beside: "before" },
      lights: "#changes .effect",
    };
  };
}

export async function certainty({ run, trace }) {
  const masked = run.mask && trace.tokens.source.findIndex(({ special, piece: word }) => special && word === run.mask);
  const at = run.mask ? Math.max(0, masked) : Math.max(0, trace.uncertain);
  const { piece: word, probability } = trace.guesses[at];
  return {
    question: "Here it is least sure. How likely is its first choice?",
    options: ["less than 50 %", "50 to 90 %", "more than 90 %"],
    right: probability < 0.5 ? 0 : probability <= 0.9 ? 1 : 2,
    shows: `“${shown(word)}” has ${percent(probability)}. Temperature, top-k and top-p above the bars change what is sampled.`,
    lights: "#stage .next-words .bar",
  };
}

export async function milestone({ run, trace }) {
  const { found } = await ask("milestones", { trace: trace.id });
  const chosen = found.find(({ what }) => what.startsWith("alignment")) ?? found[0];
  if (!chosen) return null;
  const { snapshots } = run;
  const at = snapshots.indexOf(chosen.step);
  const near = [snapshots[at - 4], snapshots[at + 3] ?? snapshots[at - 2], snapshots[at - 7]].filter((step) => step >= 0);
  const options = [...new Set([chosen.step, ...near])].sort((a, b) => a - b);
  return {
    question: `“${chosen.what[0].toUpperCase()}${chosen.what.slice(1)}”: from which of these steps on is that true?`,
    options: options.map((step) => `step ${step}`),
    right: options.indexOf(chosen.step),
    shows: `Step ${chosen.step} of ${snapshots.at(-1)}. Press Watch it learn, and see it happen.`,
    reveal: { snapshot: String(chosen.step) },
    lights: "#learn",
  };
}
