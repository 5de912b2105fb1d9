// What is done to a whole text before it is split: each normalizer of a tokenizer file as a function from text to text.

import { spelled } from "./bytes.js";
import { BERT_ACCENT, BERT_CONTROL, ranges, SPACE } from "./characters.js";
import { charsmap } from "./charsmap.js";
import { build } from "./known.js";
import { compile, replace } from "./patterns.js";

const KINDS = {
  Sequence: ({ normalizers }) => chained(normalizers.map(normalizer)),
  NFC: () => (text) => text.normalize("NFC"),
  NFD: () => (text) => text.normalize("NFD"),
  NFKC: () => (text) => text.normalize("NFKC"),
  NFKD: () => (text) => text.normalize("NFKD"),
  Lowercase: () => lowercase,
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ""),
  Strip: ({ strip_left, strip_right }) => stripped(strip_left, strip_right),
  Prepend: ({ prepend }) => (text) => text && prepend + text,
  Replace: ({ pattern, content }) => replacing(compile(pattern), content),
  ByteLevel: () => spelled,
  BertNormalizer: bert,
  Precompiled: ({ precompiled_charsmap }) => charsmap(precompiled_charsmap),
};

export const normalizer = (settings) => (settings ? build("normalizer", KINDS, settings) : (text) => text);

const chained = (steps) => (text) => steps.reduce((changed, step) => step(changed), text);

const replacing = (pattern, content) => (text) => replace(text, pattern, content);

// Each character alone: JavaScript would write the last Σ of a word as ς.
const lowercase = (text) => text.replaceAll("Σ", "σ").toLowerCase();

function stripped(left, right) {
  const begin = left ? new RegExp(`^[${SPACE}]+`, "v") : "";
  const end = right ? new RegExp(`(?<![${SPACE}])[${SPACE}]+$`, "v") : "";
  return (text) => text.replace(begin, "").replace(end, "");
}

const IDEOGRAPHS = "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f"; // BERT's

function bert({ clean_text, handle_chinese_chars, strip_accents, lowercase: lower }) {
  const control = new RegExp(`[${BERT_CONTROL}]`, "gv");
  const space = new RegExp(`[${SPACE}]`, "gv");
  const ideograph = new RegExp(ranges(IDEOGRAPHS), "gv");
  const accent = new RegExp(`[${BERT_ACCENT}]`, "gv");
  return chained([
    ...(clean_text ? [(text) => text.replace(control, "").replace(space, " ")] : []),
    ...(handle_chinese_chars ? [(text) => text.replace(ideograph, " $& ")] : []),
    ...((strip_accents ?? lower) ? [(text) => text.normalize("NFD").replace(accent, "")] : []),
    ...(lower ? [lowercase] : []),
  ]);
}
