"""A long text in pieces that a model can read, and how the pieces belong together again.

Nothing is lost: the pieces and what stands between them, joined, are the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

CLOSING = "\"'”’»)]」』"
CLOSED = f"[{re.escape(CLOSING)}]*"
# the first \s of a run only, lest a run of spaces be looked at once for each of its own
SENTENCE_END = re.compile(rf"(?<=[.!?…]){CLOSED}\s+|(?<=[。！？]){CLOSED}\s*|(?<!\s)\s*\n\s*")
WORD_END = re.compile(r"\s+")


class Span(NamedTuple):
    """A piece of a text, and the spaces behind it."""

    text: str
    behind: str


def spans_of(text: str, size: Callable[[str], int], limit: int, whole: bool = True) -> list[Span]:
    """The sentences of a text; what is still longer than the limit, cut between words, or inside one.

    With `whole`, a text within the limit stays as it is. `size` counts what the limit is about, usually tokens.
    """
    if whole and size(text) <= limit:
        return [Span(text, "")]
    found = []
    for sentence in split(text, SENTENCE_END):
        if size(sentence.text) <= limit:
            found.append(sentence)
            continue
        parts = [part for word in split(sentence.text, WORD_END) for part in halves(word, size, limit)]
        found += joined(parts, size, limit)
        found[-1] = Span(found[-1].text, found[-1].behind + sentence.behind)
    return found


def split(text: str, border: re.Pattern[str]) -> Iterator[Span]:
    """A text in pieces, cut where the spaces at a border begin."""
    begin = 0
    for found in border.finditer(text):
        place = found.end() - len(found[0].lstrip(CLOSING))  # a closing quote belongs to its sentence
        if place > begin:
            yield Span(text[begin:place], text[place : found.end()])
            begin = found.end()
    if begin < len(text):
        yield Span(text[begin:], "")


def halves(piece: Span, size: Callable[[str], int], limit: int) -> Iterator[Span]:
    """A piece without a border inside, halved until it is within the limit."""
    if size(piece.text) <= limit or len(piece.text) < 2:
        yield piece
        return
    middle = len(piece.text) // 2
    yield from halves(Span(piece.text[:middle], ""), size, limit)
    yield from halves(Span(piece.text[middle:], piece.behind), size, limit)


def joined(parts: list[Span], size: Callable[[str], int], limit: int) -> list[Span]:
    """Small pieces put together again, as long as they stay within the limit."""
    found: list[Span] = []
    for part in parts:
        longer = found[-1].text + found[-1].behind + part.text if found else ""
        if found and size(longer) <= limit:
            found[-1] = Span(longer, part.behind)
        else:
            found.append(part)
    return found
