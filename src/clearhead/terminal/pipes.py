"""Lines in, lines out: texts from the command line or from stdin, results to stdout, a line for a line, in UTF-8.

Notes and counts go to stderr, so that a pipe carries results only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import Any, cast

from clearhead.config import UserError, require

AT_ONCE = 1 << 14  # bytes of stdin that are answered together, at most: a few hundred lines


def read_texts(arguments: Sequence[str] = (), empty: bool = True) -> Iterator[list[str]]:
    """The texts of the command line, all at once; without any, the lines of stdin, as many at a time as have come.

    With `empty = False`, a text without a word is refused.
    """
    name = "text" if arguments else "line"
    done, counting = 0, not (arguments or sys.stdin.isatty() or sys.stdout.isatty()) and sys.stderr.isatty()
    for lines in [[os.fsencode(text) for text in arguments]] if arguments else arriving_lines():
        texts = [decoded(line, f"{name} {number:,}") for number, line in enumerate(lines, done + 1)]
        for number, text in enumerate(texts, done + 1):
            require(empty or bool(text.strip()), f"{name} {number:,} is empty: there is nothing to read; leave it out")
        yield texts
        done += len(texts)
        if counting:
            sys.stderr.write(f"\r{done:,} lines")
    if counting:
        note("")


def arriving_lines() -> Iterator[list[bytes]]:
    """The lines of stdin, as many at a time as have come: whoever waits for an answer before the next line gets one."""
    if sys.stdin.isatty():
        note("reading from the terminal, a text a line; Ctrl-D ends")
    rest = b""
    while read := cast(BufferedIOBase, sys.stdin.buffer).read1(AT_ONCE):
        *lines, rest = (rest + read).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def decoded(line: bytes, name: str) -> str:
    """A line as text, without the carriage return that some systems end it with."""
    try:
        return line.decode("utf8").rstrip("\r")
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{line[error.start]:02x} at {error.start + 1:,}"
        raise UserError(f"{name} is not UTF-8 ({wrong}); convert it first: iconv -f latin1 -t utf8") from error


def write_lines(lines: Iterable[str]) -> None:
    """Write results at once, a line each."""
    write("".join(f"{on_one_line(line)}\n" for line in lines).encode())


def on_one_line(text: str) -> str:
    r"""A text whose line ends are spelled out, as \n and \r."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def write_objects(objects: Iterable[dict[str, Any]]) -> None:
    """Write results at once, a JSON object a line."""
    write_lines(json.dumps(each, ensure_ascii=False) for each in objects)


def write(result: bytes) -> None:
    """Write to stdout at once."""
    try:
        sys.stdout.buffer.write(result)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        raise UserError(f"cannot write the results: {error.strerror}") from error


def discard_stdout() -> None:
    """Let what could not be written go nowhere: Python would try, and complain, again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Say something that is no result."""
    sys.stderr.write(f"{text}\n")
