"""Long texts in parts, and many texts in chunks: nothing that is tokenized needs to fit in memory at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

CHUNK = 1_000_000  # characters handed over at once: what `tokenizers` builds for them takes about 60 bytes each
LINE = re.compile(r"\n(?=\S)")
LINE_OR_WORD = re.compile(r"\n(?=\S)|(?<=\w) (?=\w)")


def cut(text: str, size: int, between_words: bool = False) -> Iterator[str]:
    """A text in parts of `size` characters or more.

    A part begins with a line feed before a word, where all tokenizers we train cut it anyway; or, between words, with
    the one space between two letters, which may be a token's first character or go without saying: ask
    `Tokenizer.continued` before encoding it.
    """
    begin = 0
    while (place := border(text, begin + size, between_words)) < len(text):
        yield text[begin:place]
        begin = place
    yield text[begin:]


def border(text: str, begin: int, between_words: bool) -> int:
    """The first place from `begin` on where a text can be cut; its end, if there is none."""
    for found in (LINE_OR_WORD if between_words else LINE).finditer(text, begin):
        place = found.start()
        # Some fractions are \w to Python, but not to `tokenizers`; all letters are to both.
        if found[0] == "\n" or (text[place - 1].isalpha() and text[place + 1].isalpha()):
            return place
    return len(text)


def chunked(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in lists of about CHUNK characters."""
    held: list[T] = []
    total = 0
    for item in items:
        held.append(item)
        total += size(item) + 1
        if total >= CHUNK:
            yield held
            held, total = [], 0
    if held:
        yield held
