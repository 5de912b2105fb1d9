"""Byte-pair encoding, slow and readable, with the same merges and ids as the trainer of `tokenizers`.

Text is split into words, and words into bytes. Then, repeatedly, the most frequent pair of neighbouring tokens becomes
a new token. To encode a word, the learned pairs are merged in the order in which they were learned.

Words are split as in GPT-2, by the Unicode category of each character. Python's Unicode tables may be older than those
of `tokenizers`: a letter that they do not have yet counts as "other" here. Nothing else differs.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

# A contraction; letters, digits or other characters, each with a space before them; spaces, except one before a word.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[a-zA-Z]+| ?[0-9]+| ?[^\sa-zA-Z0-9]+|\s+(?!\S)|\s+", re.ASCII)

# Printable bytes are written as themselves, the other 68 as the characters from U+0100 on: every token is printable.
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
CHARACTERS = {byte: chr(byte) for byte in PRINTABLE}
CHARACTERS |= {byte: chr(0x100 + n) for n, byte in enumerate(b for b in range(256) if b not in CHARACTERS)}
BYTES = {character: byte for byte, character in CHARACTERS.items()}


def spell(token: bytes) -> str:
    """A token as it is written in tokenizer files: b" the" is "Ġthe"."""
    return "".join(CHARACTERS[byte] for byte in token)


def plain(character: str) -> str:
    """An ASCII character of the same category: a letter for a letter, a digit for a number, a space for a space."""
    if character.isascii():
        return character
    category = unicodedata.category(character)[0]
    return "\t" if character == "\x85" else {"L": "a", "N": "0", "Z": "\t"}.get(category, "!")


def words(text: str) -> Iterator[str]:
    """The words of a text, which joined are the text; no token spans two words."""
    for match in WORD.finditer("".join(map(plain, text))):  # of the same length, so indices are the same
        yield text[match.start() : match.end()]


def single_bytes(word: str) -> list[bytes]:
    """The bytes of a word, the smallest tokens."""
    return [bytes([byte]) for byte in word.encode()]


def count_pairs(words: list[tuple[list[bytes], int]]) -> dict[tuple[bytes, bytes], int]:
    """How often each pair of neighbouring tokens occurs, given the tokens of each word and how often it occurs."""
    pairs: Counter[tuple[bytes, bytes]] = Counter()
    for tokens, count in words:
        for pair in pairwise(tokens):
            pairs[pair] += count
    return pairs


def merge(tokens: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """The tokens, with every occurrence of this pair merged, from left to right."""
    merged: list[bytes] = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged


@dataclass(frozen=True, slots=True)
class Merge:
    """A learned merge of two tokens, and the count of the pair when it was learned."""

    left: bytes
    right: bytes
    count: int


@dataclass
class BytePairs:
    """The result of training: the merges in the order in which they were learned, and the id of every token."""

    ids: dict[bytes, int]
    merges: list[Merge] = field(default_factory=list)

    def steps(self, word: str) -> Iterator[list[bytes]]:
        """A word from its bytes to its tokens, merge by merge: the earliest learned first, the leftmost first."""
        ranks = {(merge.left, merge.right): rank for rank, merge in enumerate(self.merges)}
        tokens = single_bytes(word)
        yield tokens
        while known := [(ranks[pair], index) for index, pair in enumerate(pairwise(tokens)) if pair in ranks]:
            _, index = min(known)
            tokens = [*tokens[:index], tokens[index] + tokens[index + 1], *tokens[index + 2 :]]
            yield tokens

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return [self.ids[token] for word in words(text) for token in list(self.steps(word))[-1]]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids."""
        tokens = {number: token for token, number in self.ids.items()}
        return b"".join(tokens[number] for number in ids).decode(errors="replace")


def train(texts: Iterable[str], vocab: int, specials: int = 0, least: int = 2) -> BytePairs:
    """Merge until there are `vocab` tokens (the first `specials` ids are reserved) or no pair occurs `least` times."""
    alphabet = sorted((bytes([byte]) for byte in range(256)), key=spell)
    learned = BytePairs({token: specials + n for n, token in enumerate(alphabet)})
    ids = learned.ids
    counts = Counter(word for text in texts for word in words(text))
    split = {word: single_bytes(word) for word in counts}
    while specials + len(ids) < vocab:
        pairs = count_pairs([(tokens, counts[word]) for word, tokens in split.items()])
        # The most frequent pair; of equally frequent ones, that with the lowest ids.
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]), default=None)
        if best is None or pairs[best] < least:
            break
        left, right = best
        learned.merges.append(Merge(left, right, pairs[best]))
        ids[left + right] = specials + len(ids)
        split = {word: merge(tokens, best) for word, tokens in split.items()}
    return learned
