"""Plain text as documents: split at separators, and yielded in parts, so that no document needs to fit in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clearhead.data.readers.files import read_lines
from clearhead.text.cutting import cut

DOCUMENT_PART_CHARACTERS = 1 << 16  # characters of one part of a long document, about


class DocumentPart(NamedTuple):
    """A part of a document, as `cutting.cut` cuts it between words; `last` marks the end of the document."""

    text: str
    last: bool


def read_parts(path: Path, separator: str, begin: int = 0, end: int = sys.maxsize) -> Iterator[DocumentPart]:
    """The documents of a plain text file (its characters from begin to end), in parts.

    Line feeds around a separator belong to it. Without a separator, the file is one document, to its last character.
    """
    pending = ""  # text that has not been yielded yet
    inside = False  # whether it continues a document whose first part has been yielded
    for text in batched_text(within(read_lines(path), begin, end)):
        pending += text
        *documents, pending = pending.split(separator) if separator else [pending]
        for document in documents:
            yield from split_document(trim(document, inside))
            inside = False
        until = max(0, len(pending) - len(separator))  # the end of `pending` may be half a separator
        complete = pending[:until].lstrip("\n") if separator and not inside else pending[:until]
        *parts, rest = cut(complete, DOCUMENT_PART_CHARACTERS, between_words=True)
        for part in parts:
            yield DocumentPart(part, False)
            inside = True
        pending = rest + pending[until:]
    pending = trim(pending, inside) if separator else pending
    if pending or inside:
        yield from split_document(pending)


def trim(document: str, inside: bool) -> str:
    """A document without the line feeds next to its separators; `inside`: this is not its beginning."""
    return document.rstrip("\n") if inside else document.strip("\n")


def within(lines: Iterator[str], begin: int, end: int) -> Iterator[str]:
    """The characters from `begin` to `end` of the lines, counted over all lines."""
    start = 0
    for line in lines:
        if start + len(line) > begin and start < end:
            yield line[max(0, begin - start) : end - start]
        start += len(line)


def batched_text(lines: Iterator[str]) -> Iterator[str]:
    """Lines joined into longer strings, in which separators are found faster."""
    pending: list[str] = []
    size = 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size > DOCUMENT_PART_CHARACTERS:
            yield "".join(pending)
            pending = []
            size = 0
    yield "".join(pending)


def split_document(document: str) -> Iterator[DocumentPart]:
    """A document in parts of about DOCUMENT_PART_CHARACTERS characters."""
    *parts, last = cut(document, DOCUMENT_PART_CHARACTERS, between_words=True)
    yield from (DocumentPart(part, False) for part in parts)
    yield DocumentPart(last, True)


def join(parts: Iterator[DocumentPart]) -> Iterator[str]:
    """Whole documents, joined from their parts."""
    pending: list[str] = []
    for part in parts:
        pending.append(part.text)
        if part.last:
            yield "".join(pending)
            pending = []
