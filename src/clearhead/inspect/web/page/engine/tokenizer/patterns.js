// Regular expressions of a tokenizer file, and what they cut a text into. They are written for the library Oniguruma:
// `compile` says the same in JavaScript, or refuses what it cannot say.

import { PATTERN_WORD, PATTERN_WORD_IN_CLASS, SPACE } from "./characters.js";

const ESCAPE = String.raw`\\[pP]\{\^?\w+\}|\\u[\da-fA-F]{4}|\\x\{[\da-fA-F]+\}|\\.`;
const OUTSIDE = new RegExp(String.raw`${ESCAPE}|\(\?(?:i?:|<?[=!])|\(\?|\[\^?\]?|\{\d*,?\d*\}\??|.`, "gsuy");
const INSIDE = new RegExp(String.raw`${ESCAPE}|\[:|\[\^?\]?|&&|.`, "gsuy"); // in [...]

const CLASSES = { s: SPACE, w: PATTERN_WORD, d: "\\p{Nd}" };
const ALSO = { s: "ſ", k: "\u212a" }; // what else is the same letter in another case
const LINES = { "^": "(?<=^|\\n(?!$))", $: "(?=$|\\n)", ".": "[^\\n]" }; // only \n ends a line

// The regular expression of {String: text} or {Regex: source}, which finds all matches.
export function compile(pattern) {
  const source = pattern.String === undefined ? translated(pattern.Regex) : [...pattern.String].map(literal).join("");
  return valid(source) ?? refuse(pattern.Regex);
}

function valid(source) {
  try {
    return new RegExp(source, "gv");
  } catch {
    return null;
  }
}

function refuse(source, part = "it") {
  throw new Error(`this tokenizer's regular expression ${source} cannot be used in the browser: ${part} is not known here`);
}

function translated(source) {
  const groups = [false]; // of each open group, whether it ignores case
  let depth = 0; // of [...]
  let range = false; // whether a "-" would make a range
  let result = "";
  for (let place = 0; place < source.length; ) {
    const part = next(source, place, depth > 0);
    place += part.length;
    const character = [...part].length === 1;
    if (["(?", "[:", "&&", "[]", "[^]"].includes(part) || /^\{\d+\}\?$/.test(part)) refuse(source, part);
    else if (part.startsWith("[")) {
      if (groups.at(-1)) refuse(source, "[...] in (?i:...)");
      depth++;
      result += part;
    } else if (depth > 0 && part === "]") {
      depth--;
      result += part;
    } else if (part.startsWith("\\")) result += escaped(part, source, depth > 0);
    else if (depth > 0) result += part === "-" && range && source[place] !== "]" ? part : literal(part);
    else if (part.startsWith("(")) {
      groups.push(groups.at(-1) || part === "(?i:");
      result += part === "(?i:" ? "(?:" : part;
    } else if (part === ")") {
      groups.pop();
      result += part;
    } else if (part in LINES) result += LINES[part];
    else if (!character || "|*+?".includes(part)) result += part.replace("{,", "{0,");
    else result += groups.at(-1) ? anyCase(part) : literal(part);
    range = depth > 0 && (character ? part !== "[" && part !== "]" && part !== "-" : /^\\[^sSwWdDpP]/.test(part));
  }
  return result;
}

function next(source, place, inside) {
  const parts = inside ? INSIDE : OUTSIDE;
  parts.lastIndex = place;
  return parts.exec(source)[0];
}

function escaped(part, source, inside) {
  const letter = part[1];
  if (letter === "p" || letter === "P") return property(part) ?? refuse(source, part);
  const members = inside && letter.toLowerCase() === "w" ? PATTERN_WORD_IN_CLASS : CLASSES[letter.toLowerCase()];
  if (members) return letter in CLASSES ? `[${members}]` : `[^${members}]`;
  if (/^\\[ux]./.test(part)) return `\\u{${/[\da-fA-F]+/.exec(part)[0]}}`;
  if ("nrtfv".includes(letter)) return part;
  return /\w/.test(letter) ? refuse(source, part) : literal(letter);
}

// \p{L}, \p{^L} and \p{Han}, which is \p{Script=Han} in JavaScript.
function property(part) {
  const name = part.slice(3, -1).replace("^", "");
  const sign = (part[1] === "P") !== part.includes("^") ? "P" : "p";
  return [name, `Script=${name}`].map((each) => `\\${sign}{${each}}`).find(valid);
}

const literal = (character) => (/[\p{P}\p{S}]/u.test(character) && character < "\x80" ? hexadecimal(character) : character);

const hexadecimal = (character) => `\\x${character.charCodeAt(0).toString(16)}`;

function anyCase(character) {
  const cases = new Set([character, character.toLowerCase(), character.toUpperCase()]);
  return `[${[...cases].map(literal).join("")}${ALSO[character.toLowerCase()] ?? ""}]`;
}

// --- matches ---------------------------------------------------------------------------------------------------------

// Begin and end of each match; an empty one does not count right after another match or in an empty text.
export function* matches(text, pattern) {
  if (!text) return;
  let end = -1;
  for (const found of text.matchAll(pattern)) {
    if (found[0] === "" && found.index === end) continue;
    end = found.index + found[0].length;
    yield [found.index, end];
  }
}

export function replace(text, pattern, content) {
  let result = "";
  let last = 0;
  for (const [begin, end] of matches(text, pattern)) {
    result += text.slice(last, begin) + content;
    last = end;
  }
  return result + text.slice(last);
}

// What a match is merged with, given whether this part of the text and the one before it are matches.
const MERGED = {
  Isolated: () => false,
  Removed: () => false,
  Contiguous: (match, before) => match === before,
  MergedWithPrevious: (match, before) => match && !before,
  MergedWithNext: (match, before) => match && !before, // seen from the end
};

// The parts of a text as [begin, end], none of them empty. With `invert`, what lies between matches counts as a match.
export function split(text, pattern, behavior, invert = false) {
  if (!Object.hasOwn(MERGED, behavior)) throw new Error(`this tokenizer splits by '${behavior}', which is not known here`);
  let parts = between(text, pattern).map(([begin, end, match]) => [begin, end, match !== invert]);
  if (behavior === "Removed") parts = parts.filter(([, , match]) => !match);
  else if (behavior === "MergedWithNext") parts = merged(parts.reverse(), MERGED[behavior]).reverse();
  else parts = merged(parts, MERGED[behavior]);
  return parts.filter(([begin, end]) => begin < end);
}

// The whole text as [begin, end, whether it is a match].
function between(text, pattern) {
  const parts = [];
  let last = 0;
  for (const [begin, end] of matches(text, pattern)) {
    if (last < begin) parts.push([last, begin, false]);
    parts.push([begin, end, true]);
    last = end;
  }
  if (last < text.length) parts.push([last, text.length, false]);
  return parts;
}

function merged(parts, together) {
  const found = [];
  let before = false;
  for (const [begin, end, match] of parts) {
    const last = found.at(-1);
    if (last && together(match, before)) found[found.length - 1] = [Math.min(last[0], begin), Math.max(last[1], end)];
    else found.push([begin, end]);
    before = match;
  }
  return found;
}
