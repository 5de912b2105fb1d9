"""Long texts in parts, and many texts in chunks, so that what is tokenized need not fit in memory at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

CHUNK_CHARACTERS = 1_000_000  # characters that are tokenized at once: `tokenizers` needs about 60 bytes for each
LINE = re.compile(r"\n(?=\S)")
LINE_OR_WORD = re.compile(r"\n(?=\S)|(?<=\w) (?=\w)")


def cut(text: str, size: int, between_words: bool = False) -> Iterator[str]:
    """A text in parts of at least `size` characters.

    A part begins with a line feed before a word, where all our tokenizers begin a new token. With `between_words`, it
    may also begin with a single space between two letters, for which some tokenizers have no token: pass it through
    `Tokenizer.continued` before encoding it.
    """
    begin = 0
    while (place := border(text, begin + size, between_words)) < len(text):
        yield text[begin:place]
        begin = place
    yield text[begin:]


def border(text: str, begin: int, between_words: bool) -> int:
    """The first index from `begin` on where a text can be cut; its length, if there is none."""
    for found in (LINE_OR_WORD if between_words else LINE).finditer(text, begin):
        place = found.start()
        # Some fractions match \w in Python, but not in `tokenizers`; all letters match in both.
        if found[0] == "\n" or (text[place - 1].isalpha() and text[place + 1].isalpha()):
            return place
    return len(text)


def chunked(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in lists of about CHUNK_CHARACTERS characters, as `size` counts them."""
    chunk: list[T] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += size(item) + 1
        if total >= CHUNK_CHARACTERS:
            yield chunk
            chunk = []
            total = 0
    if chunk:
        yield chunk
