"""Plain text as documents: cut at separators, and handed on in pieces, so that none needs to fit in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clearhead.data.readers.files import read_lines
from clearhead.text.cutting import cut

PIECE = 1 << 16  # characters after which a long document is handed on in part


class DocumentPart(NamedTuple):
    """Part of a document, cut as `cutting.cut` does between words; `last` ends the document."""

    text: str
    last: bool


def read_parts(path: Path, separator: str, begin: int = 0, end: int = sys.maxsize) -> Iterator[DocumentPart]:
    """The documents of a plain text file (its characters from begin to end) in pieces, however long they are.

    Line feeds around a separator belong to it. With no separator the file is one document, kept to the last character.
    """
    held, inside = "", False  # text not handed on yet; whether it goes on with a document that was handed on in part
    for text in batched_text(within(read_lines(path), begin, end)):
        held += text
        *documents, held = held.split(separator) if separator else [held]
        for document in documents:
            yield from split_document(trim(document, inside))
            inside = False
        until = max(0, len(held) - len(separator))  # the end of `held` may be half a separator
        sure = held[:until].lstrip("\n") if separator and not inside else held[:until]
        *parts, rest = cut(sure, PIECE, between_words=True)
        for part in parts:
            yield DocumentPart(part, False)
            inside = True
        held = rest + held[until:]
    held = trim(held, inside) if separator else held
    if held or inside:
        yield from split_document(held)


def trim(document: str, inside: bool) -> str:
    """A document without the line feeds next to its separators; `inside`: it began earlier."""
    return document.rstrip("\n") if inside else document.strip("\n")


def within(lines: Iterator[str], begin: int, end: int) -> Iterator[str]:
    """The characters from begin to end of the joined lines."""
    start = 0
    for line in lines:
        if start + len(line) > begin and start < end:
            yield line[max(0, begin - start) : end - start]
        start += len(line)


def batched_text(lines: Iterator[str]) -> Iterator[str]:
    """Lines joined to longer strings, so that looking for separators costs little."""
    held: list[str] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size > PIECE:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


def split_document(document: str) -> Iterator[DocumentPart]:
    """A document in pieces of about PIECE characters."""
    *parts, last = cut(document, PIECE, between_words=True)
    yield from (DocumentPart(part, False) for part in parts)
    yield DocumentPart(last, True)


def join(pieces: Iterator[DocumentPart]) -> Iterator[str]:
    """Whole documents from their pieces."""
    held: list[str] = []
    for piece in pieces:
        held.append(piece.text)
        if piece.last:
            yield "".join(held)
            held = []
