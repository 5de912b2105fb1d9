// A page that `clearhead explore --site` wrote computes everything itself, in the background.

const runs = document.querySelector('meta[name="runs"]')?.content;
const worker = runs && new Worker("engine/worker.js", { type: "module", name: runs });
const waiting = new Map(); // number of a request -> what to do with its answer
let count = 0;

export const live = Boolean(worker);

// An answer of the engine, which takes the same requests as the server.
export function compute(path, query) {
  const number = (count += 1);
  worker.postMessage({ number, path, query: Object.fromEntries(new URLSearchParams(query)) });
  return new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
}

function receive({ data: { number, found, error } }) {
  const { resolve, reject } = waiting.get(number);
  waiting.delete(number);
  if (error === undefined) resolve(found);
  else reject(new Error(error));
}

// The engine could not be loaded.
function fail({ message }) {
  for (const { reject } of waiting.values()) reject(new Error(message || "the engine could not be loaded; load the page again"));
}

if (live) {
  worker.addEventListener("message", receive);
  worker.addEventListener("error", fail);
  navigator.serviceWorker?.register("offline.js").catch(() => {}); // without it, the page works online only
}
