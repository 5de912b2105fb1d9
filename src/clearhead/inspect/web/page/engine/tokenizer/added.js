// Tokens that were added to a vocabulary: they are found in a text before the model sees it, except special ones.

import { SPACE, WORD } from "./characters.js";
import { compile } from "./patterns.js";

const ENDS_IN_WORD = new RegExp(`[${WORD}]$`, "v");
const BEGINS_WITH_WORD = new RegExp(`^[${WORD}]`, "v");
const SPACES_BEFORE = new RegExp(`(?<![${SPACE}])[${SPACE}]*$`, "v");
const SPACES_AFTER = new RegExp(`^[${SPACE}]*`, "v");

// A function from a text to its parts, {text, begin} or {id}. `spelling` says how a token is written in such a text.
export function finder(tokens, spelling) {
  if (tokens.every((token) => token.special)) return (text) => [{ text, begin: 0 }]; // "<end>" in a text is text
  const known = new Map(tokens.map((token) => [spelling(token), token]));
  const longest = [...known.keys()].filter(Boolean).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longest.map((text) => compile({ String: text }).source).join("|"), "gv");
  return (text) => {
    const parts = [];
    let last = 0;
    for (const found of text.matchAll(pattern)) {
      const token = known.get(found[0]);
      const [begin, end] = extent(text, found.index, found.index + found[0].length, token, last);
      if (begin === null) continue;
      if (last < begin) parts.push({ text: text.slice(last, begin), begin: last });
      if (begin < end) parts.push({ id: token.id }); // not if it was among the spaces of the one before
      last = end;
    }
    if (last < text.length) parts.push({ text: text.slice(last), begin: last });
    return parts;
  };
}

// Where a found token begins and ends with the spaces that belong to it; null if it does not count.
function extent(text, begin, end, token, last) {
  const inWord = ENDS_IN_WORD.test(text.slice(0, begin)) || BEGINS_WITH_WORD.test(text.slice(end));
  if (token.special || (token.single_word && inWord)) return [null, null];
  return [
    token.lstrip ? Math.max(last, SPACES_BEFORE.exec(text.slice(0, begin)).index) : begin,
    token.rstrip ? end + SPACES_AFTER.exec(text.slice(end))[0].length : end,
  ];
}
