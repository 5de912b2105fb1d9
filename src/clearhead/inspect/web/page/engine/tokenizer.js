// Text to token ids and back, as text/tokenizer.py: the tokenizer.json of a run, read without the library that wrote it.
// A text is normalised, split into pieces, and each piece is encoded by the model; decoders turn tokens into text.
// The tests compare all ids. Only characters that are younger than the library's or the browser's tables may differ.

import { finder } from "./tokenizer/added.js";
import { readable } from "./tokenizer/bytes.js";
import { decoder } from "./tokenizer/decoders.js";
import { model } from "./tokenizer/models.js";
import { normalizer } from "./tokenizer/normalizers.js";
import { preTokenizer } from "./tokenizer/pretokenizers.js";

export { replay } from "./tokenizer/merges.js";

// `settings` has what tokenizer.py computes: {special: {name: id}, control: ids that are no text}.
export const loadTokenizer = (json, settings) => new Tokenizer(json, settings);

class Tokenizer {
  constructor(json, { special, control }) {
    this.special = special;
    this.model = model(json.model);
    this.normalize = normalizer(json.normalizer);
    this.split = preTokenizer(json.pre_tokenizer);
    this.decoder = decoder(json.decoder);
    this.byteLevel = json.decoder?.type === "ByteLevel";
    this.control = new Set(control);
    this.readAdded(json.added_tokens);
    this.tokens = new Map([...this.model.ids].map(([token, id]) => [id, token]));
    for (const [id, token] of this.added) this.tokens.set(id, token.content);
    this.size = [...this.tokens.keys()].reduce((most, id) => Math.max(most, id), 0) + 1;
    this.leaky = control.some((id) => this.ids(this.tokens.get(id)).some((found) => this.control.has(found)));
  }

  readAdded(tokens) {
    this.added = new Map(tokens.map((token) => [token.id, token]));
    const spelling = (token) => (token.normalized ? this.normalize(token.content) : token.content);
    this.spellings = new Map(tokens.map((token) => [token.id, spelling(token)])); // as a decoder sees them
    this.findAdded = finder(
      tokens.filter((token) => !token.normalized),
      spelling,
    );
    this.findNormalized = finder(
      tokens.filter((token) => token.normalized),
      spelling,
    );
  }

  // The ids of a text; of the special tokens, only `unknown` can be among them.
  encode(text) {
    const lone = Array.from(text).findIndex((character) => /\p{Cs}/u.test(character));
    if (lone >= 0) throw new Error(`character ${lone + 1} of the text is half a character (a lone surrogate); remove it`);
    const ids = this.ids(text);
    return this.leaky ? ids.map((id) => (this.control.has(id) ? this.unknown() : id)) : ids;
  }

  unknown() {
    if (this.special.unknown === undefined) throw new Error("this tokenizer has no special token for 'unknown'");
    return this.special.unknown;
  }

  ids(text) {
    return this.findAdded(text).flatMap(({ id, text: part, begin }) => id ?? this.idsBetween(part, begin === 0));
  }

  // The ids of a part of a text that lies between added tokens; `first` if the text begins with it.
  idsBetween(text, first) {
    const changed = this.normalize(text);
    const kept = first && changed !== this.normalize(text.replace(/^./su, ""));
    return this.findNormalized(changed).flatMap(({ id, text: part, begin }) => id ?? this.idsOf(part, kept && begin === 0));
  }

  idsOf(text, first) {
    const pieces = text ? this.split({ text, first }) : [];
    return pieces.flatMap((piece) => (piece.text ? this.model.encode(piece.text) : []));
  }

  // The text of the ids, without special tokens other than `unknown`, which replaces text.
  decode(ids, keepSpecial = false) {
    const tokens = [];
    for (const id of ids) {
      const token = this.token(id);
      if (keepSpecial || !this.control.has(id)) tokens.push(this.spellings.get(id) ?? token);
    }
    return this.decoder(tokens).join("");
  }

  // One token as readable text; bytes that are not a whole character are shown as \xe2.
  piece(id) {
    const token = this.token(id);
    if (this.added.has(id)) return token;
    return this.byteLevel ? readable(token) : token.replaceAll("▁", " ");
  }

  token(id) {
    if (this.tokens.has(id)) return this.tokens.get(id);
    throw new Error(`id ${id} is not one of the ${this.size.toLocaleString("en")} ids of this tokenizer`);
  }
}
