// Byte-pair encoding: of all neighbouring tokens of a word, the pair that was learned first is merged, until there is none.
// text/bpe.py is the readable version; here the pairs wait in a queue, so that a word may have 20,000 characters.

import { byteTokens } from "./bytes.js";

const MOST_IDS = 2 ** 26; // so that two ids fit in one number
const MOST_CACHED = 10000; // words whose ids are kept

export class BytePairs {
  constructor(settings) {
    if (settings.dropout) throw new Error(`this tokenizer has dropout = ${settings.dropout}, and would encode at random`);
    this.settings = settings;
    this.ids = new Map(Object.entries(settings.vocab));
    this.ranks = new Map(); // two ids as one number -> when this merge was learned
    this.results = []; // of each merge
    const inside = settings.continuing_subword_prefix?.length ?? 0;
    for (const [rank, merge] of settings.merges.entries()) {
      const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
      this.ranks.set(this.ids.get(left) * MOST_IDS + this.ids.get(right), rank);
      this.results.push(this.ids.get(left + right.slice(inside)));
    }
    this.cache = new Map();
  }

  // When the merge of two tokens was learned; undefined if they are not merged.
  rank(left, right) {
    return this.ranks.get(this.ids.get(left) * MOST_IDS + this.ids.get(right));
  }

  encode(word) {
    if (this.settings.ignore_merges && this.ids.has(word)) return [this.ids.get(word)];
    let ids = this.cache.get(word);
    if (!ids) {
      ids = this.merge(this.characters(word));
      if (this.cache.size < MOST_CACHED) this.cache.set(word, ids);
    }
    return ids;
  }

  // The ids of the characters. One that is not in the vocabulary becomes bytes, or the unknown token, or nothing.
  characters(word) {
    const { continuing_subword_prefix: prefix, end_of_word_suffix: suffix, fuse_unk: fused } = this.settings;
    const characters = Array.from(word);
    const ids = [];
    let unknown = []; // the last one, until it is known whether the next one is fused with it
    characters.forEach((character, place) => {
      const token = (place > 0 ? (prefix ?? "") : "") + character + (place === characters.length - 1 ? (suffix ?? "") : "");
      const id = this.ids.get(token);
      const bytes = id === undefined && this.settings.byte_fallback && byteTokens(this.ids, token);
      if (id !== undefined) {
        ids.push(...unknown, id);
        unknown = [];
      } else if (bytes) ids.push(...bytes);
      else if (!fused || unknown.length === 0) {
        ids.push(...unknown);
        unknown = this.unknown();
      }
    });
    return [...ids, ...unknown];
  }

  unknown() {
    const token = this.settings.unk_token;
    if (token && !this.ids.has(token)) throw new Error(`this tokenizer's vocabulary has no '${token}'`);
    return token ? [this.ids.get(token)] : [];
  }

  // Merge in place. Tokens are a linked list; the queue has each known pair once, as rank * length + place.
  merge(ids) {
    const length = ids.length;
    const next = Array.from(ids, (_, place) => place + 1);
    const previous = Array.from(ids, (_, place) => place - 1);
    const rank = (at) => (next[at] < length ? this.ranks.get(ids[at] * MOST_IDS + ids[next[at]]) : undefined);
    const queue = [];
    const wait = (at) => at >= 0 && rank(at) !== undefined && push(queue, rank(at) * length + at);
    for (let at = 0; at < length; at++) wait(at);
    while (queue.length > 0) {
      const first = pop(queue);
      const at = first % length;
      const result = this.results[(first - at) / length];
      if (ids[at] === null || this.results[rank(at)] !== result) continue; // merged with others in the meantime
      const right = next[at];
      ids[at] = result;
      ids[right] = null;
      next[at] = next[right];
      if (next[at] < length) previous[next[at]] = at;
      wait(previous[at]);
      wait(at);
    }
    return ids.filter((id) => id !== null);
  }
}

// --- a queue of numbers, the lowest first: a binary heap -----------------------------------------------------------------

function push(heap, number) {
  let place = heap.push(number) - 1;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    if (heap[parent] <= number) break;
    heap[place] = heap[parent];
    place = parent;
  }
  heap[place] = number;
}

function pop(heap) {
  const first = heap[0];
  const last = heap.pop();
  let place = 0;
  for (let child; (child = 2 * place + 1) < heap.length; place = child) {
    if (child + 1 < heap.length && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[place] = heap[child];
  }
  if (heap.length > 0) heap[place] = last;
  return first;
}
