"""A long text in spans that a model can read: sentences, or parts of them.

Nothing is lost: the spans and the white space after each, joined, are the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

CLOSING = "\"'”’»)]」』"
CLOSED = f"[{re.escape(CLOSING)}]*"
# (?<!\s): a match begins at the first of several spaces only; trying every one of them would take quadratic time
TITLES = ("Mr", "Mrs", "Ms", "Dr", "Prof", "St")  # abbreviations that a name follows, not the next sentence
NO_TITLE = "".join(rf"(?<!\b{title}\.)" for title in TITLES)
SENTENCE_END = re.compile(rf"(?<=[.!?…]){NO_TITLE}{CLOSED}\s+|(?<=[。！？]){CLOSED}\s*|(?<!\s)\s*\n\s*")
WORD_END = re.compile(r"\s+")
MARGIN = 1.1  # times as many parts of a word as it needs on average: most of them are then within the limit

Sizes = Callable[[list[str]], list[int]]  # the size of each text; many at once, because tokenizing one by one is slow


class Span(NamedTuple):
    """A part of a text, and the white space after it."""

    text: str
    space: str


def spans_of(texts: Sequence[str], sizes: Sizes, limit: int, whole: bool = True) -> list[list[Span]]:
    """The sentences of each text; one that exceeds the limit is cut between words, or inside a word if it must be.

    With `whole`, a text within the limit is not cut. `sizes` measures what the limit is about, usually tokens. An empty
    text has no spans.
    """
    if not whole:
        return list(sentences_of(texts, sizes, limit))
    short = [bool(text) and size <= limit for text, size in zip(texts, sizes(list(texts)), strict=True)]
    of_long = sentences_of([text for text, fits in zip(texts, short, strict=True) if not fits], sizes, limit)
    return [[Span(text, "")] if fits else next(of_long) for text, fits in zip(texts, short, strict=True)]


def sentences_of(texts: Sequence[str], sizes: Sizes, limit: int) -> Iterator[list[Span]]:
    """The sentences of each text; one that exceeds the limit is cut between words."""
    sentences = [list(split(text, SENTENCE_END)) for text in texts]
    measured = iter(sizes([sentence.text for some in sentences for sentence in some]))
    for some in sentences:
        found = []
        for sentence in some:
            if next(measured) <= limit:
                found.append(sentence)
                continue
            found += joined(cut_words(list(split(sentence.text, WORD_END)), sizes, limit), sizes, limit)
            found[-1] = Span(found[-1].text, found[-1].space + sentence.space)
        yield found


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


def cut_words(words: list[Span], sizes: Sizes, limit: int) -> list[Span]:
    """Cut each word that exceeds the limit into parts of equal length.

    Their number follows from the word's size, so that few parts have to be measured and cut again.
    """
    found = []
    for word, size in zip(words, sizes([each.text for each in words]), strict=True):
        length = len(word.text)
        if size <= limit or length < 2:
            found.append(word)
            continue
        size_of_part = math.ceil(length / math.ceil(MARGIN * size / limit))
        parts = [Span(word.text[begin : begin + size_of_part], "") for begin in range(0, length, size_of_part)]
        parts[-1] = Span(parts[-1].text, word.space)
        found += cut_words(parts, sizes, limit)
    return found


def joined(parts: list[Span], sizes: Sizes, limit: int) -> list[Span]:
    """Neighbouring parts joined for as long as they stay within the limit."""

    def fits(begin: int, count: int) -> bool:
        return sizes([text_of(parts[begin : begin + count])])[0] <= limit

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
