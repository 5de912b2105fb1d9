// The page: reads the address, requests the trace, and draws the map, the chosen view and the panel beside it.

import { make, phone, still } from "./dom.js";
import { growFromBox } from "./diagram/diagram.js";
import { address, follow, go, now } from "./state.js";
import { ask, openTrace, saved } from "./data.js";
import { drawMap, keepMapInSight } from "./map.js";
import { drawStrips } from "./tokens.js";
import { count, drawChanges } from "./changes.js";
import { drawEffect } from "./effect.js";
import { colourMap } from "./insight.js";
import { drawBeside } from "./beside.js";
import { drawLearning } from "./learn.js";
import { hidePanel, showTensor } from "./inspector.js";
import { openGlossary } from "./glossary.js";
import { viewOf } from "./kinds.js";
import { pickedToken } from "./show.js";
import { flipTheme } from "./theme.js";
import { startTour } from "./tour.js";
import { VIEWS, viewTitle } from "./views.js";

const part = (id) => document.getElementById(id);
let runs = [];
let latest = 0;
let shownTrace = null;
let viewed = "";

// The state, with defaults for this run filled in.
function complete(state, run = runs[0]) {
  const stack = run.stacks.find(({ name }) => name === state.stack) ?? run.stacks.at(-1);
  const layer = Math.min(state.layer, stack.layers - 1);
  const view = Object.hasOwn(VIEWS, state.view) && VIEWS[state.view].fits(run) ? state.view : "overview";
  const fitting = stack.sublayers.filter((name) => viewOf(name) === view || !["attention", "feedforward"].includes(view));
  const sublayer = fitting.includes(state.part) ? state.part : fitting[0];
  const head = Math.min(state.head, run.heads - 1);
  const beside = ["before", "text", runs.length > 1 && "run"].includes(state.beside) ? state.beside : "";
  return {
    ...state,
    view,
    stack: stack.name,
    layer,
    part: sublayer,
    head,
    beside,
    text: state.text || run.examples[0],
  };
}

// What to trace: the text of the state, or what it is compared with.
function traceQuery(state, other) {
  const asked = { run: 0, text: state.text, target: state.target, snapshot: state.snapshot, changes: changesOf(state) };
  if (state.write && runs[0].family === "decoder-only") asked.write = state.write;
  if (!other) return asked;
  if (state.beside === "run") return { ...asked, run: 1, snapshot: "" };
  if (state.beside === "text") return { ...asked, text: state.other || state.text, target: "" };
  return { ...asked, changes: "" };
}

// A trace with the table that describes its tensors.
async function traceOf(query) {
  return Object.assign(await openTrace(query), { kinds: runs[query.run].kinds });
}

function changesOf(state) {
  return count(state.changes) ? JSON.stringify(state.changes) : "";
}

async function draw() {
  const mine = (latest += 1);
  const state = complete(now());
  const { hash } = location;
  part("stage").setAttribute("aria-busy", "true");
  try {
    drawMap(part("map"), runs[0], state); // at once; the rest when the model has answered
    drawChanges(part("changes"), state);
    const trace = await traceOf(traceQuery(state));
    const other = state.beside && (await traceOf(traceQuery(state, true)));
    if (mine !== latest) return;
    shownTrace = trace;
    if (VIEWS[state.view].uncertain && state.token < 0 && trace.uncertain >= 0 && !runs[0].mask) {
      go({ token: trace.uncertain }, true); // a change of the model does not move it
      return;
    }
    drawStrips(part("strips"), trace, picked(state, trace));
    drawSentence(state, trace.target);
    drawTools(state);
    await Promise.all([drawLearning(part("learn"), runs[0], state, trace), drawStage(state, trace, other, mine)]);
  } catch (error) {
    if (mine === latest) drawError(state, error);
  }
  if (mine !== latest) return;
  part("stage").dataset.drawn = hash;
  part("stage").removeAttribute("aria-busy");
  if (!shownTrace) return;
  drawEffect(part("changes"), shownTrace); // last, since the model writes for it
  colourMap(part("map"), shownTrace);
}

// What went wrong, without the tokens and numbers of another text.
function drawError(state, error) {
  shownTrace = null;
  part("stage").replaceChildren(make("section", { class: "card error", role: "alert" }, error.message));
  part("strips").replaceChildren();
  delete part("strips").dataset.drawnFor;
  hidePanel();
  drawSentence(state, "");
  drawTools(state);
}

// The token that the view is about, as "target:3"; "" for most views.
function picked(state, trace) {
  const side = VIEWS[state.view].side?.({ state, trace });
  const context = { state, trace, run: runs[0] };
  return side ? `${side}:${VIEWS[state.view].at?.(context) ?? pickedToken(context, side)}` : "";
}

async function drawStage(state, trace, other, mine) {
  const view = VIEWS[state.view];
  const context = { state, trace, other, run: runs[0], runNumber: 0 };
  const second = other && besideContext(state, other);
  const drawnView = other ? [await drawBeside(view, context, second, runs)] : await view.draw(context);
  const parts = [
    (!view.ownHeading || (view.lead && state.beside)) && heading(view, state),
    ...[drawnView].flat(),
    ...(view.once?.(context) ?? []),
  ].filter(Boolean);
  if (mine !== latest) return;
  document.body.classList.toggle("shows-diagram", state.view === "overview");
  part("stage").replaceChildren(...parts);
  growFromBox(part("stage"), !still.matches);
  if (viewed && viewed !== state.view) scrollTo({ top: Math.min(scrollY, phone.matches ? part("body").offsetTop : 0) });
  viewed = state.view;
  const name = view.tensor?.(context);
  if (name) showTensor(trace, name);
  else hidePanel();
}

// What the view is compared with.
function besideContext(state, trace) {
  const number = Number(state.beside === "run");
  return { state: complete(state, runs[number]), trace, run: runs[number], runNumber: number, second: true };
}

function heading(view, state) {
  const where = { stack: state.stack, block: `${state.stack}, block ${state.layer}` }[view.of];
  return make(
    "div",
    {},
    make("div", { class: "row spread" }, make("h1", {}, viewTitle(view, runs[0])), where && make("small", {}, where)),
    make("p", { class: "lead" }, typeof view.lead === "function" ? view.lead(runs[0]) : view.lead),
  );
}

function drawSentence(state, written) {
  const form = part("sentence");
  if (form.contains(document.activeElement) && form.dataset.drawn) return;
  const [run] = runs;
  const source = make("input", {
    type: "text",
    class: "source",
    name: "text",
    value: state.text,
    "aria-label": "Text",
    maxlength: 20000,
    required: true,
    pattern: ".*\\S.*",
    title: "a text for the model to read",
    disabled: Boolean(saved),
  });
  const target = make("input", {
    type: "text",
    class: "target",
    name: "target",
    value: state.target,
    maxlength: 20000,
    disabled: Boolean(saved),
    placeholder: run.family === "encoder-decoder" ? written || "the model's own output" : "",
    "aria-label": "Target: leave empty for the model's own output",
  });
  const other = make("input", {
    type: "text",
    name: "other",
    value: state.other,
    "aria-label": "Second text",
    placeholder: "a second text to compare",
    maxlength: 20000,
  });
  const says = saved && make("small", { title: saved.absent }, "A saved page: one text, which cannot be changed");
  const fields = [source, run.family === "encoder-decoder" && target, state.beside === "text" && other];
  form.replaceChildren(...[...fields, says || make("button", { class: "strong" }, "Run")].filter(Boolean));
  form.dataset.drawn = "yes";
  form.onsubmit = (event) => {
    event.preventDefault();
    const found = Object.fromEntries(new FormData(form));
    document.activeElement?.blur();
    go({ text: found.text, target: found.target ?? "", other: found.other ?? state.other, token: -1, shown: 0, write: 0 });
  };
}

function drawTools(state) {
  const dark = document.documentElement.dataset.theme === "dark";
  const beside = (what) => go({ beside: state.beside === what ? "" : what });
  const buttons = [
    !saved && ["Compare", () => beside("text"), "Compare with a second text", state.beside === "text"],
    runs.length > 1 && ["Other run", () => beside("run"), "Compare with the other run", state.beside === "run"],
    ["Tour", () => startTour(runs[0]), "A guided tour"],
    ["Glossary", () => openGlossary(runs), "What the words mean"],
    ["Copy link", copyLink, "Copy the address of what you see"],
    [dark ? "☀" : "☾", () => flipTheme(draw), dark ? "Light colours" : "Dark colours"],
  ].filter(Boolean);
  part("tools").replaceChildren(
    ...buttons.map(([title, onclick, help, pressed]) =>
      make(
        "button",
        {
          type: "button",
          title: help,
          "aria-label": help,
          "aria-pressed": pressed === undefined ? undefined : String(pressed),
          onclick,
        },
        title,
      ),
    ),
  );
}

async function copyLink(event) {
  await navigator.clipboard?.writeText(location.href.split("#")[0] + address(now()));
  event.target.textContent = "Copied";
}

// Keys that work everywhere except in a text field.
const KEYS = {
  "[": (state) => ({ head: Math.max(0, state.head - 1) }),
  "]": (state) => ({ head: Math.min(runs[0].heads - 1, state.head + 1) }),
  "{": (state) => ({ layer: Math.max(0, state.layer - 1) }),
  "}": (state) => ({ layer: state.layer + 1 }),
};

// The address after # is the state, so the link that skips to the stage must not become a part of it.
part("skip").addEventListener("click", (event) => {
  event.preventDefault();
  part("stage").focus();
});

addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, select, textarea") || document.querySelector("dialog[open]");
  if (writing || !runs.length || event.ctrlKey || event.metaKey || event.altKey) return;
  if (KEYS[event.key]) go(KEYS[event.key](complete(now())));
  else if (event.key === "t") startTour(runs[0]);
  else if (event.key === "?") openGlossary(runs);
});

async function begin() {
  try {
    ({ runs } = await ask("run"));
  } catch (error) {
    part("stage").replaceChildren(make("section", { class: "card error", role: "alert" }, error.message));
    return;
  }
  part("run-name").textContent = runs.map(({ name }) => name).join(" · ");
  document.title = `${runs[0].name} · clearhead explore`;
  document.documentElement.classList.toggle("still", still.matches);
  follow(draw);
  keepMapInSight();
  await draw();
}

begin();
