// Bytes as text. Byte-level tokenizers write each byte as one visible character: itself if it can be seen, else one of
// those from U+0100 on. See text/bpe.py.

const CHARACTERS = [];
for (let byte = 0, next = 256; byte < 256; byte++) {
  const seen = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  CHARACTERS.push(String.fromCharCode(seen ? byte : next++));
}
export const BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

const encoder = new TextEncoder();
const lossy = new TextDecoder("utf-8", { ignoreBOM: true }); // what is not UTF-8 becomes U+FFFD
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

export const bytesOf = (text) => encoder.encode(text);

// " the" is "Ġthe".
export const spelled = (text) => Array.from(bytesOf(text), (byte) => CHARACTERS[byte]).join("");

export const decoded = (bytes) => lossy.decode(Uint8Array.from(bytes));

// The text of bytes; null if they are not UTF-8.
export function decodedStrictly(bytes) {
  try {
    return strict.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

// The ids of the tokens <0xE2>, ... for the bytes of a text; null if the vocabulary does not have all of them.
export function byteTokens(vocabulary, text) {
  const name = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
  const ids = Array.from(bytesOf(text), (byte) => vocabulary.get(name(byte)));
  return ids.includes(undefined) ? null : ids;
}

// The text of a token in visible characters; a byte that is not part of a character is written as \xe2.
export function readable(token) {
  const bytes = Array.from(token, (character) => BYTES.get(character));
  let text = "";
  for (let place = 0, size; place < bytes.length; place += size) {
    const first = bytes[place];
    size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = decodedStrictly(bytes.slice(place, place + size));
    if (character === null) size = 1;
    text += character ?? `\\x${first.toString(16)}`;
  }
  return text;
}
