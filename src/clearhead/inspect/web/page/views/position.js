// Positions: their vectors, and how similar two positions are by their distance.

import { later, make } from "../dom.js";
import { ask, saved, tensor } from "../data.js";
import { knockOut, toggle } from "../changes.js";
import { curves } from "../curves.js";
import { matrix } from "../matrix.js";
import { sideOf } from "../kinds.js";
import { dot, tensorMatrix } from "../show.js";

const COUNT = 64; // positions to draw

export const position = {
  title: "Position",
  of: "stack",
  short: "How the position of a token is encoded",
  lead: "Attention by itself ignores the order of tokens: permuted inputs give outputs permuted in the same way. So each position is encoded.",
  differs: true,
  fits: (run) => run.position !== "none",
  tensor: ({ state }) => `${state.stack}.position`,
  draw: async (context) => [await ownPositions(context)],
  once: (context) => [
    later(
      ask("waves", { run: context.runNumber, stack: context.state.stack, count: COUNT }).then((found) => general(context, found)),
      (content) => content,
    ),
    !saved && make("section", { class: "card" }, make("h2", {}, "Change the positions"), experiments(context)),
  ].filter(Boolean),
};

// The first positions, whatever the text.
function general({ run }, { shape, data }) {
  const waves = data.map((row) => Float32Array.from(row));
  return make(
    "div",
    { class: "stacked" },
    make("section", { class: "card" }, make("h2", {}, TITLES[run.position]), waveMatrix(shape, waves, run)),
    make("div", { class: "columns" }, channelCurves(waves, run), byDistance(waves, run)),
  );
}

const TITLES = {
  sinusoidal: "The first positions: the paper's sines and cosines, with frequencies that fall from left to right",
  learned: "The first positions: one learned vector for each",
  rotary: "The first positions: the cosine of the angle by which each pair of channels is rotated",
};

function waveMatrix([rows, columns], waves, run) {
  const values = new Float32Array(rows * columns);
  waves.forEach((row, i) => values.set(row, i * columns));
  const names = Array.from({ length: rows }, (_, i) => `position ${i}`);
  const cellNames = Array.from({ length: columns }, (_, i) => `${run.position === "rotary" ? "pair" : "channel"} ${i}`);
  return matrix({ rows, columns, values, rowNames: names, cellNames, label: "positions by channels", height: 300 });
}

// Some channels as curves over the positions, with high and low frequencies.
function channelCurves(waves, run) {
  const columns = waves[0].length;
  const step = run.position === "rotary" ? 1 : 2;
  const what = run.position === "rotary" ? "pair" : "channel";
  const chosen = [0, 1 / 8, 1 / 4, 1 / 2].map((part) => Math.floor((part * columns) / step) * step);
  const lines = chosen.map((channel) => ({
    name: `${what} ${channel}`,
    points: waves.map((row, at) => [at, row[channel]]),
  }));
  return make(
    "section",
    { class: "card" },
    make("h2", {}, run.position === "rotary" ? "Four pairs of channels: the cosines of their angles" : "Four channels"),
    curves(lines, { label: `${what}s over positions`, across: "position" }),
  );
}

// The mean dot product of the vectors of two positions, by their distance.
function byDistance(waves, run) {
  const most = Math.min(48, waves.length - 1);
  const points = Array.from({ length: most + 1 }, (_, distance) => {
    if (run.position === "rotary") return [distance, waves[distance].reduce((a, b) => a + b, 0) / waves[0].length];
    const pairs = waves.length - distance;
    let sum = 0;
    for (let at = 0; at < pairs; at += 1) sum += dot(waves[at], waves[at + distance]);
    return [distance, sum / pairs];
  });
  const said =
    run.position === "rotary"
      ? "The mean of the cosines: the factor by which the dot product of two equal vectors shrinks at this distance."
      : "The mean dot product of the vectors of two positions at this distance. Near positions have similar vectors, so the model can tell near from far.";
  return make(
    "section",
    { class: "card" },
    make("h2", {}, "Similarity of two positions, by distance"),
    curves([{ name: "product", points }], { label: "dot product by distance", across: "distance" }),
    make("p", { class: "note" }, said),
  );
}

// The positions that the tokens of this text get; a change shows here. Of rotary positions, the cosines.
async function ownPositions(context) {
  const { state, run, trace } = context;
  const name = `${state.stack}.position`;
  const index = run.position === "rotary" ? [0, 0] : [];
  const picture = await tensorMatrix(context, name, {
    found: await tensor(trace.id, name, index.join(",")),
    index,
    down: sideOf(state.stack),
    across: run.position === "rotary" ? "pair" : "channel",
    height: 260,
  });
  const title = run.position === "rotary" ? "The angles of this text's tokens (cosines)" : "The positions of this text's tokens";
  return make("section", { class: "card own-positions" }, make("h2", {}, title), picture);
}

// Shuffle, reverse or remove the positions.
function experiments({ state, trace, run }) {
  const name = `${state.stack}.position`;
  const length = trace.tokens[sideOf(state.stack)].length;
  const reversed = { kind: "shuffle", value: Array.from({ length }, (_, i) => length - 1 - i), at: {} };
  const choices = [
    ["Shuffle them", { kind: "shuffle", value: 1, at: {} }],
    ["Reverse them", reversed],
    run.position !== "rotary" && ["Remove them", knockOut()],
  ].filter(Boolean);
  const pressed = (change) =>
    String((state.changes[name] ?? []).some((other) => JSON.stringify(other) === JSON.stringify(change)));
  return make(
    "div",
    { class: "row" },
    choices.map(([title, change]) =>
      make(
        "button",
        { type: "button", class: "warn", "aria-pressed": pressed(change), onclick: () => toggle(name, change) },
        title,
      ),
    ),
  );
}
