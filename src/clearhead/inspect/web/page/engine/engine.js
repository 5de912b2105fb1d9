// Answers the page's requests about the runs of a site, as inspect/web/explorer.py does on a server.

import { loadTokenizer } from "./tokenizer.js";
import { readWeights } from "./weights.js";
import { Passes } from "./trace.js";
import { whole } from "./names.js";
import * as measures from "./answers/measures.js";
import * as pictures from "./answers/pictures.js";
import * as readings from "./answers/readings.js";
import * as searches from "./answers/searches.js";
import * as stories from "./answers/stories.js";
import * as texts from "./answers/texts.js";

const REQUESTS = { ...texts, ...pictures, ...stories, ...readings, ...searches, ...measures };

export class Engine {
  // `read` gives the content of a file of the site, as a promise of an ArrayBuffer; `count` is the number of runs.
  constructor(read, count) {
    this.read = read;
    this.runs = Array.from({ length: count }, () => null); // promises
    this.atStep = ["", null]; // the run of the latest snapshot, and its number and step
    this.passes = new Passes();
    this.ids = new Map(); // what a trace was asked for -> its id
  }

  // JSON data, a tensor, or a list of tensors.
  async answer(path, query) {
    if (!Object.hasOwn(REQUESTS, path)) throw new Error(`there is no request '${path}'`);
    return REQUESTS[path](this, query);
  }

  // A run by its number; with a snapshot, the run with the weights of that training step.
  async run(number, snapshot = "") {
    const place = whole("run", String(number), this.runs.length);
    this.runs[place] ??= openRun(place, (path) => this.read(`runs/${place}/${path}`));
    const found = await this.runs[place];
    if (!snapshot) return found;
    if (!found.about.snapshots.map(String).includes(snapshot)) {
      throw new Error(`snapshot '${snapshot}': of this run there are ${found.about.snapshots.join(", ") || "none"}`);
    }
    if (this.atStep[0] !== `${place} ${snapshot}`) {
      const weights = await this.snapshot(place, found, Number(snapshot));
      this.atStep = [`${place} ${snapshot}`, { ...found, weights }];
    }
    return this.atStep[1];
  }

  async snapshot(place, run, step) {
    const file = `snapshots/step-${String(step).padStart(8, "0")}.safetensors`;
    return allNames(run, readWeights(await this.read(`runs/${place}/${file}`)));
  }
}

async function openRun(number, read) {
  const json = async (path) => JSON.parse(new TextDecoder().decode(await read(path)));
  const run = await json("run.json");
  const { source, target } = run.tokenizers;
  const tokenizers = { target: loadTokenizer(await json(target.file), target) };
  tokenizers.source = source.file === target.file ? tokenizers.target : loadTokenizer(await json(source.file), source);
  const weights = allNames(run, readWeights(await read("model.safetensors")));
  return { ...run, number, tokenizers, weights };
}

// A tied parameter has several names.
const allNames = (run, stored) =>
  Object.fromEntries(Object.entries(run.parameters).map(([name, own]) => [name, stored[own]]));
