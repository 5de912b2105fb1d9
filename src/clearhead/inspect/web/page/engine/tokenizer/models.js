// The model of a tokenizer: the ids of a piece of text, and the vocabulary as a map from tokens to ids.

import { BytePairs } from "./bpe.js";
import { build } from "./known.js";
import { Unigram } from "./unigram.js";

const KINDS = {
  BPE: (settings) => new BytePairs(settings),
  WordPiece: (settings) => new WordPiece(settings),
  WordLevel: (settings) => new Words(settings),
  Unigram: (settings) => new Unigram(settings),
};

export const model = (settings) => build("model", KINDS, settings);

// A word is one token, or unknown.
class Words {
  constructor({ vocab, unk_token }) {
    this.ids = new Map(Object.entries(vocab));
    this.unknown = unk_token;
  }

  encode(word) {
    const id = this.ids.get(word) ?? this.ids.get(this.unknown);
    if (id === undefined) throw new Error(`this tokenizer's vocabulary has no '${this.unknown}'`);
    return [id];
  }
}

// The longest token with which a word begins, then the longest with which the rest begins, and so on, or unknown.
class WordPiece extends Words {
  constructor(settings) {
    super(settings);
    this.prefix = settings.continuing_subword_prefix;
    this.longest = settings.max_input_chars_per_word;
  }

  encode(word) {
    const characters = Array.from(word);
    const ids = [];
    for (let begin = 0; begin < characters.length; ) {
      const found = characters.length <= this.longest && this.piece(characters, begin);
      if (!found) return super.encode(this.unknown);
      ids.push(found.id);
      begin = found.end;
    }
    return ids;
  }

  piece(characters, begin) {
    for (let end = characters.length; end > begin; end--) {
      const id = this.ids.get((begin > 0 ? this.prefix : "") + characters.slice(begin, end).join(""));
      if (id !== undefined) return { id, end };
    }
    return null;
  }
}
