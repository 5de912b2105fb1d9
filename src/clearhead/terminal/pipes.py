"""Texts in, results out: texts from the command line or from stdin, results on stdout, one line for each, in UTF-8.

Notes and counts go to stderr, so that a pipe carries nothing but results.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import Any, cast

from clearhead.config import UserError, require
from clearhead.terminal.streams import harmless
from clearhead.text.encodings import encoding_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # with which Windows begins UTF-8 files
BATCH_BYTES = 1 << 14  # of stdin that are read at once, at most: a few hundred lines


def read_texts(arguments: Sequence[str] = (), empty: bool = True) -> Iterator[list[str]]:
    """Yield the texts of the command line as one batch; without any, the lines of stdin in batches as they arrive.

    With `empty = False`, a text without a word is an error.
    """
    name = "text" if arguments else "line"
    counting = not (arguments or sys.stdin.isatty() or sys.stdout.isatty()) and sys.stderr.isatty()
    done = 0
    for lines in [[os.fsencode(text) for text in arguments]] if arguments else read_lines():
        texts = [decode(line, f"{name} {number:,}") for number, line in enumerate(lines, done + 1)]
        for number, text in enumerate(texts, done + 1):
            require(empty or bool(text.strip()), f"{name} {number:,} is empty: there is nothing to read; leave it out")
        yield texts
        done += len(texts)
        if counting:
            sys.stderr.write(f"\r{done:,} lines")
    if counting:
        note("")


def read_lines() -> Iterator[list[bytes]]:
    """Yield the lines of stdin as they arrive: a program may wait for each answer before it sends its next line."""
    if sys.stdin.isatty():
        note("reading from the terminal, one text per line; Ctrl-D ends")
    unfinished: list[bytes] = []  # the parts of a line that has not ended yet
    started = False
    while read := read_stdin():
        read = read if started else read.removeprefix(BYTE_ORDER_MARK)
        started = True
        first, *others = read.split(b"\n")
        unfinished.append(first)
        if others:
            *lines, last = (b"".join(unfinished), *others)
            unfinished = [last]
            yield lines
    if rest := b"".join(unfinished):
        yield [rest]


def read_stdin() -> bytes:
    """Return the bytes of stdin that are available, at least one; none at its end."""
    try:
        return cast(BufferedIOBase, sys.stdin.buffer).read1(BATCH_BYTES)
    except OSError as error:
        raise UserError(f"cannot read stdin: {error.strerror}; give a text, or redirect a file: < FILE") from error


def decode(line: bytes, name: str) -> str:
    """Return a line as text, without the carriage return of a Windows line end."""
    try:
        text = line.decode("utf8").rstrip("\r")
        wrong = line.find(b"\0") if encoding_of(line).startswith("UTF-16") else -1
    except UnicodeDecodeError as error:
        wrong = error.start
    if wrong >= 0:
        problem = f"{name} is not UTF-8 (byte 0x{line[wrong]:02x} at {wrong + 1:,})"
        raise UserError(f"{problem}; convert it first: iconv -f {encoding_of(line)} -t UTF-8")
    return text


def write_lines(lines: Iterable[str]) -> None:
    """Write one line for each result, and flush."""
    write_text("".join(f"{on_one_line(line)}\n" for line in lines))


def on_one_line(text: str) -> str:
    r"""Return the text with its line ends escaped as \n and \r."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def write_objects(objects: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object per line, and flush."""
    write_lines(json.dumps(each, ensure_ascii=False) for each in objects)


def write(result: bytes) -> None:
    """Write to stdout, and flush."""
    sys.stdout.buffer.write(result)
    sys.stdout.buffer.flush()


def write_text(result: str) -> None:
    """Write text to stdout, and flush."""
    write(harmless(result, sys.stdout).encode())


def note(text: str) -> None:
    """Write a line that is not a result to stderr."""
    sys.stderr.write(harmless(f"{text}\n", sys.stderr))
