"""A long text in spans that a model can read: sentences, or parts of them.

Nothing is lost: the spans and the white space after each, joined, are the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

CLOSING = "\"'”’»)]」』"
CLOSED = f"[{re.escape(CLOSING)}]*"
# (?<!\s): a match begins at the first of several spaces only; trying every one of them would take quadratic time
SENTENCE_END = re.compile(rf"(?<=[.!?…]){CLOSED}\s+|(?<=[。！？]){CLOSED}\s*|(?<!\s)\s*\n\s*")
WORD_END = re.compile(r"\s+")


class Span(NamedTuple):
    """A part of a text, and the white space after it."""

    text: str
    space: str


def spans_of(text: str, size: Callable[[str], int], limit: int, whole: bool = True) -> list[Span]:
    """The sentences of a text; one that exceeds the limit is cut between words, or inside a word if it must be.

    With `whole`, a text within the limit is not cut. `size` measures what the limit is about, usually tokens.
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
        found[-1] = Span(found[-1].text, found[-1].space + sentence.space)
    return found


def split(text: str, border: re.Pattern[str]) -> Iterator[Span]:
    """The spans between the borders of a text; the white space of a border belongs to the span before it."""
    begin = 0
    for found in border.finditer(text):
        end = found.end() - len(found[0].lstrip(CLOSING))  # a closing quotation mark belongs to its sentence
        if end > begin:
            yield Span(text[begin:end], text[end : found.end()])
            begin = found.end()
    if begin < len(text):
        yield Span(text[begin:], "")


def halves(span: Span, size: Callable[[str], int], limit: int) -> Iterator[Span]:
    """A word, halved until each part is within the limit."""
    if size(span.text) <= limit or len(span.text) < 2:
        yield span
        return
    middle = len(span.text) // 2
    yield from halves(Span(span.text[:middle], ""), size, limit)
    yield from halves(Span(span.text[middle:], span.space), size, limit)


def joined(parts: list[Span], size: Callable[[str], int], limit: int) -> list[Span]:
    """Neighbouring parts joined for as long as they stay within the limit."""

    def fits(begin: int, count: int) -> bool:
        return size(text_of(parts[begin : begin + count])) <= limit

    found: list[Span] = []
    begin = 0
    while begin < len(parts):
        count = longest_fit(partial(fits, begin), len(parts) - begin)
        found.append(Span(text_of(parts[begin : begin + count]), parts[begin + count - 1].space))
        begin += count
    return found


def text_of(parts: Sequence[Span]) -> str:
    """The text of neighbouring parts, without the white space after the last."""
    return "".join(part.text + part.space for part in parts[:-1]) + parts[-1].text


def longest_fit(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, at least 1; if a number fits, all smaller ones must fit.

    It is found by doubling, then by bisection: measuring each number in turn would take quadratic time.
    """
    low = 1
    high = 2
    while high <= most and fits(high):
        low = high
        high *= 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
