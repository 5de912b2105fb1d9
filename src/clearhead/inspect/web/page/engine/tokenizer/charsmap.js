// The normalisation table of a SentencePiece model: a trie of byte strings (a double array), and their replacements.

import { bytesOf, decoded } from "./bytes.js";

const LONGEST = 5; // bytes of several characters that are replaced together

const label = (unit) => unit & 0x800000ff; // the byte that leads to this unit, with a sign that no byte has for values
const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6); // where the units of longer strings are, by XOR
const hasValue = (unit) => ((unit >>> 8) & 1) === 1;

export function charsmap(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const units = new Uint32Array(bytes.slice(4, 4 + size).buffer);
  const replacements = bytes.slice(4 + size); // each ends with a 0
  const replacement = (part) => {
    const value = shortest(units, bytesOf(part));
    return value === null ? null : decoded(replacements.subarray(value, replacements.indexOf(0, value)));
  };
  const replaced = (cluster) =>
    (bytesOf(cluster).length <= LONGEST ? replacement(cluster) : null) ??
    Array.from(cluster, (character) => replacement(character) ?? character).join("");
  const clusters = new Intl.Segmenter("en", { granularity: "grapheme" });
  const known = new Map();
  return (text) => {
    let result = "";
    for (const { segment } of clusters.segment(text)) {
      if (!known.has(segment)) known.set(segment, replaced(segment));
      result += known.get(segment);
    }
    return result;
  };
}

// The value of the shortest string in the trie with which these bytes begin: it stands for all of them.
function shortest(units, bytes) {
  let place = offset(units[0]);
  for (const byte of bytes) {
    if (byte === 0) return null;
    place ^= byte;
    const unit = units[place];
    if (label(unit) !== byte) return null;
    place ^= offset(unit);
    if (hasValue(unit)) return units[place] & 0x7fffffff;
  }
  return null;
}
