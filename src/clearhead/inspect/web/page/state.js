// The state of the page is its address: everything after # can be copied, sent, bookmarked, and gone back to.

const START = {
  view: "overview",
  text: "",
  target: "", // what the decoder reads instead of its own output
  write: 0, // tokens by which a language model has continued the text
  stack: "",
  layer: 0,
  part: "attention",
  head: 0,
  lines: "mean", // alignment: "head", "mean" of all heads, or "rollout"
  stage: "weights",
  token: -1, // the token that the view is about; -1: the view's default
  snapshot: "", // a step of training; empty: the finished model
  changes: {}, // to the model: {name: [{kind, value, at}]}
  beside: "", // what to compare with: "before", "run", "text", or nothing
  other: "", // the second text
  difference: "", // "yes": of the two, one minus the other
  temperature: "1",
  top_k: 0,
  top_p: "1",
  width: 4, // of the beam
  choice: -1, // the id of the token whose logit is explained
  shown: 0, // decoding: tokens written so far
};

const listeners = [];
let current = read();

function read() {
  const found = { ...START };
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (!(key in START)) continue;
    if (typeof START[key] === "number") found[key] = Number.parseInt(value, 10) || 0;
    else if (key === "changes") found[key] = parsed(value);
    else found[key] = value;
  }
  return found;
}

function parsed(text) {
  try {
    const found = JSON.parse(text);
    if (!found || typeof found !== "object" || Array.isArray(found)) return {};
    return Object.fromEntries(Object.entries(found).filter(([, list]) => Array.isArray(list) && list.every(isChange)));
  } catch {
    return {};
  }
}

// Whether it has the form of a change; the server checks what is in it.
function isChange(change) {
  const { kind, value, at = {} } = change ?? {};
  const places = at && typeof at === "object" && Object.values(at).every(Array.isArray);
  return typeof kind === "string" && value !== undefined && places;
}

export function address(state) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = key === "changes" ? JSON.stringify(value) : String(value);
    if (text !== (key === "changes" ? "{}" : String(START[key]))) query.set(key, text);
  }
  return `#${query}`;
}

export function now() {
  return current;
}

// Move to another state. This adds an entry to the browser's history, unless it is `quiet`, as for sliders.
export function go(changes, quiet = false) {
  current = { ...current, ...changes };
  history[quiet ? "replaceState" : "pushState"](null, "", address(current));
  for (const listener of listeners) listener(current);
}

// Put something into the address that is on the screen already.
export function keep(changes) {
  current = { ...current, ...changes };
  history.replaceState(null, "", address(current));
  document.getElementById("stage").dataset.drawn = location.hash;
}

export function follow(listener) {
  listeners.push(listener);
}

addEventListener("popstate", () => {
  current = read();
  for (const listener of listeners) listener(current);
});
