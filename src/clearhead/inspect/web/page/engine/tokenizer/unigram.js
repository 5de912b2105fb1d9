// Unigram (SentencePiece): of all ways to write a text in tokens, the one with the highest sum of scores.

import { byteTokens } from "./bytes.js";

const UNKNOWN = 10; // by how much the score of an unknown character is below the lowest

export class Unigram {
  constructor({ vocab, unk_id, byte_fallback }) {
    this.ids = new Map(vocab.map(([token], id) => [token, id]));
    this.scores = vocab.map(([, score]) => score);
    this.unknown = unk_id;
    this.byteFallback = byte_fallback;
    this.unlikely = this.scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN;
    this.longest = vocab.reduce((most, [token]) => Math.max(most, token.length), 0);
  }

  encode(text) {
    const bytes = (token) => (this.byteFallback ? byteTokens(this.ids, token) : null);
    return this.tokens(text).flatMap((token) => this.ids.get(token) ?? bytes(token) ?? this.missing());
  }

  missing() {
    if (this.unknown === null) throw new Error("this tokenizer has no token for unknown text");
    return this.unknown;
  }

  // The tokens of the best way, from its end; unknown characters in a row are one.
  tokens(text) {
    const best = this.best(text);
    const tokens = [];
    let unknown = false;
    for (let end = text.length; end > 0; end = best[end].begin) {
      const { begin, id } = best[end];
      const piece = text.slice(begin, end);
      if (unknown && id === this.unknown) tokens.push(piece + tokens.pop());
      else tokens.push(piece);
      unknown = id === this.unknown;
    }
    return tokens.reverse();
  }

  // For each place, the token that ends there on the best way from the beginning of the text (Viterbi).
  best(text) {
    const best = [{ score: 0 }];
    const offer = (begin, end, id, score) => {
      const sum = score + best[begin].score;
      if (!best[end] || sum > best[end].score) best[end] = { begin, id, score: sum };
    };
    for (let begin = 0, width; begin < text.length; begin += width) {
      width = text.codePointAt(begin) > 0xffff ? 2 : 1;
      for (let end = begin + width; end <= Math.min(begin + this.longest, text.length); end++) {
        const id = this.ids.get(text.slice(begin, end));
        if (id !== undefined) offer(begin, end, id, this.scores[id]);
      }
      if (!this.ids.has(text.slice(begin, begin + width))) offer(begin, begin + width, this.missing(), this.unlikely);
    }
    return best;
  }
}
