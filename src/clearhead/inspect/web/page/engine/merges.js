// How a byte-level tokenizer arrives at its tokens, merge by merge, as inspect/web/merges.py and text/bpe.py.

const MOST_WORDS = 60; // that are replayed
const WORD = /'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

// Printable bytes are written as themselves in tokenizer files, the others as the characters from U+0100 on.
const isPrintable = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte < 0xad) || byte >= 0xae;
const BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const OTHERS = BYTES.filter((byte) => !isPrintable(byte));
const CHARACTERS = BYTES.map((byte) => String.fromCodePoint(isPrintable(byte) ? byte : 0x100 + OTHERS.indexOf(byte)));
const CODES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

// For each word, its pieces from single bytes to tokens; nothing for a tokenizer that works in another way.
export function replay(tokenizer, { model, decoder }, text) {
  if (model.type !== "BPE" || decoder?.type !== "ByteLevel") return [];
  const ranks = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  const replayed = [];
  for (const [word] of [...text.matchAll(WORD)].slice(0, MOST_WORDS)) {
    const steps = [...stepsOf(word, ranks)];
    const ids = steps.at(-1).map((token) => model.vocab[token]);
    if (ids.join() !== tokenizer.encode(word).join()) return [];
    replayed.push(steps.map((tokens) => tokens.map(readable)));
  }
  return replayed;
}

// A word from its bytes to its tokens: the earliest learned merge first, the leftmost first.
function* stepsOf(word, ranks) {
  let tokens = [...new TextEncoder().encode(word)].map((byte) => CHARACTERS[byte]);
  yield tokens;
  for (;;) {
    const found = tokens.slice(1).map((token, i) => ranks.get(`${tokens[i]} ${token}`) ?? Infinity);
    const best = Math.min(...found);
    if (best === Infinity) return;
    const place = found.indexOf(best);
    tokens = [...tokens.slice(0, place), tokens[place] + tokens[place + 1], ...tokens.slice(place + 2)];
    yield tokens;
  }
}

// A token as text: whole characters as they are, other bytes as \xe2.
function readable(token) {
  const bytes = Uint8Array.from([...token].map((character) => CODES.get(character)));
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const size = [1, 2, 3, 4].find((count) => character(bytes.subarray(i, i + count))) ?? 0;
    text += size ? character(bytes.subarray(i, i + size)) : `\\x${bytes[i].toString(16).padStart(2, "0")}`;
    i += size || 1;
  }
  return text;
}

// The one character of these bytes; "" if they are none.
function character(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return [...text].length === 1 ? text : "";
  } catch {
    return "";
  }
}
