// Translate in the browser with an exported run: onnxruntime-web for the programs, and a tokenizer of a few lines.
// The result is that of `clearhead translate --beam 1`, for one sentence. See docs/exchange.md.

const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu; // as GPT-2 splits a text

// Byte-level BPE writes each byte as one character: itself if it can be seen, else the next one after 255.
const CHARACTERS = [];
for (let byte = 0, next = 256; byte < 256; byte++) {
  const seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  CHARACTERS.push(String.fromCodePoint(seen ? byte : next++));
}
const BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

/** The byte-level BPE of a tokenizer.json (tokenizer.kind = "bpe"). */
export class Tokenizer {
  constructor(json) {
    const steps = json.normalizer?.normalizers ?? (json.normalizer ? [json.normalizer] : []);
    if (json.pre_tokenizer?.type !== "ByteLevel" || steps.some((step) => step.type !== "Lowercase")) {
      throw new Error("only byte-level BPE is known here (tokenizer.kind = \"bpe\")");
    }
    this.lowercase = steps.length > 0;
    this.ids = json.model.vocab;
    this.tokens = new Map(Object.entries(this.ids).map(([token, id]) => [id, token]));
    this.special = new Set(json.added_tokens.filter((token) => token.special).map((token) => token.id));
    const pairs = json.model.merges.map((pair) => (Array.isArray(pair) ? pair.join(" ") : pair));
    this.ranks = new Map(pairs.map((pair, rank) => [pair, rank]));
  }

  encode(text) {
    const words = (this.lowercase ? text.toLowerCase() : text).match(WORDS) ?? [];
    return words.flatMap((word) => this.merge(word)).map((token) => this.ids[token]);
  }

  /** Merge the pair that was learned first, until none is left. */
  merge(word) {
    let parts = [...new TextEncoder().encode(word)].map((byte) => CHARACTERS[byte]);
    while (true) {
      const ranks = parts.slice(1).map((part, i) => this.ranks.get(`${parts[i]} ${part}`) ?? Infinity);
      const best = Math.min(...ranks);
      if (best === Infinity) return parts;
      const merged = [];
      for (let i = 0; i < parts.length; i++) {
        merged.push(ranks[i] === best ? parts[i] + parts[++i] : parts[i]);
      }
      parts = merged;
    }
  }

  decode(ids) {
    const text = ids.filter((id) => !this.special.has(id)).map((id) => this.tokens.get(id)).join("");
    return new TextDecoder().decode(Uint8Array.from([...text], (character) => BYTES.get(character)));
  }
}

/** An exported translator: two programs, two tokenizers and a few settings. */
export class Translator {
  static async load(folder) {
    const self = new Translator();
    self.ort = await import("./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs");
    self.ort.env.wasm.numThreads = 1; // more need headers that a plain file server does not send
    const read = async (name) => {
      const answer = await fetch(`${folder}/${name}`);
      if (!answer.ok) throw new Error(`there is no ${name}`);
      return answer.json();
    };
    self.settings = await read("settings.json");
    self.source = new Tokenizer(await read("tokenizer.source.json"));
    self.target = new Tokenizer(await read("tokenizer.target.json"));
    self.encoder = await self.ort.InferenceSession.create(`${folder}/encoder.onnx`);
    self.decoder = await self.ort.InferenceSession.create(`${folder}/decoder.onnx`);
    return self;
  }

  integers(ids) {
    return new this.ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
  }

  /** Write the most likely token at each step, up to the end token. L layers, G key/value heads, K head size. */
  async translate(text) {
    const { Tensor } = this.ort;
    const ids = [...this.source.encode(text.trim()), this.settings.source_end];
    const source_real = new Tensor("bool", new Uint8Array(ids.length).fill(1), [1, ids.length]);
    const memory = await this.encoder.run({ source: this.integers(ids), source_real }); // (L, 1, G, S, K)
    const [layers, , heads, , size] = memory.source_keys.dims;
    let keys = new Tensor("float32", new Float32Array(0), [layers, 1, heads, 0, size]); // nothing yet
    let values = keys;
    const padding = new Tensor("int64", new BigInt64Array(1), [1]);
    const limit = Math.min(ids.length + this.settings.extra_tokens, this.settings.max_tokens);
    const written = [];
    for (let newest = this.settings.start; written.length < limit; written.push(newest)) {
      const given = { ids: this.integers([newest]), padding, keys, values, source_real, ...memory };
      const found = await this.decoder.run(given);
      newest = found.logits.data.reduce((best, logit, id, all) => (logit > all[best] ? id : best), 0);
      if (newest === this.settings.end) break;
      keys = found.new_keys;
      values = found.new_values;
    }
    return this.target.decode(written);
  }
}
