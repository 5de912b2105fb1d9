// Which characters are spaces, letters of a word or punctuation: the insides of [...] in a regular expression.
// JavaScript's own \s and \w are others: \s has U+FEFF and not U+0085, and \w is ASCII.

export const SPACE = String.raw`\p{White_Space}`;
export const WORD = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;
// \w in the patterns of a tokenizer: alone and in [...].
export const PATTERN_WORD = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾`;
export const PATTERN_WORD_IN_CLASS = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}`;

// BERT's tables are those of Unicode 8. These ranges have the marks and signs that are younger, and no older ones.
const YOUNGER = `
  61d 7fd 890-8e2 9fd-9fe a76 afa-aff b55 c04-c3c c77 c84 d00 d3b-d3c d81 eba ece 180f-1886 1abf-1aeb 1b4e-1b4f 1b7d-1b7f
  1df6-1dfb 2e43-2e5d a82c a8c5 a8ff a9bd 10d24-10f89 11070-11074 110c2-110cd 111cf 1123e-11241 1133b 113bb-1145e
  11660-1166c 116b9 1182f-11fff 12ff1-1612f 16d6d-16f4f 16fe2-16fe4 1cf00-1cf46 1e000-1e6f5 1e944-1e95f`;
const younger = ranges(YOUNGER);

// "61d 890-8e2" as [\u{61d}\u{890}-\u{8e2}].
export function ranges(text) {
  return `[${text.replace(/[\da-f]+/g, "\\u{$&}").replace(/\s/g, "")}]`;
}

export const BERT_PUNCTUATION = String.raw`[[!-~]--[A-Za-z0-9]][\p{P}--[!-~]--${younger}]\u166d\u{111c9}`;
export const BERT_ACCENT = String.raw`[\p{Mn}--${younger}--\u{111c9}]\u1734\u{1171e}`;
export const BERT_CONTROL = String.raw`[[\p{Cc}\p{Cf}\p{Co}]--${younger}--[\t\n\r]]\uFFFD`;
