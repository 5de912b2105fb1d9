"""stdin, stdout and stderr of the command line: a result that cannot be written is an error, a note is dropped.

A stream that the shell closed (`>&-`) is replaced by one that fails when it is used, so that no file that is opened
later gets its descriptor.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from typing import IO

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all control characters but tabs and line feeds


class ResultStream(io.FileIO):
    """stdout: if it cannot be written, the process ends with an error message, or silently if its reader has gone."""

    def write(self, data: object, /) -> int:
        """Write some of the bytes, as `FileIO` does."""
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:  # the reader, such as `| head`, has seen enough
            discard(self.fileno())
            sys.exit()
        except OSError as error:
            discard(self.fileno())
            sys.exit(f"clearhead: cannot write the results: {error.strerror}")


class NoteStream(io.FileIO):
    """stderr: what cannot be written is dropped, and the work continues."""

    def write(self, data: object, /) -> int:
        """Write all bytes if possible; report success even if some could not be written."""
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        with suppress(OSError):
            return super().write(data) or size  # type: ignore[arg-type]
        return size


def discard(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null: at exit, Python would write the rest and report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def open_streams() -> None:
    """Replace stdout and stderr of this process by checked ones, and streams that are closed by ones that fail."""
    wrong_way_round = (os.O_WRONLY, os.O_RDONLY, os.O_RDWR)  # reading stdin or writing stdout is then an error
    for descriptor, (name, mode) in enumerate(zip(("stdin", "stdout", "stderr"), wrong_way_round, strict=True)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, mode), descriptor)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf8")
    if sys.stdout is sys.__stdout__:
        results = io.BufferedWriter(ResultStream(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(results, "utf8", "backslashreplace", line_buffering=os.isatty(1))
    if sys.stderr is sys.__stderr__:
        notes = io.BufferedWriter(NoteStream(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(notes, "utf8", "backslashreplace", line_buffering=True)


def harmless(text: str, stream: IO[str]) -> str:
    r"""Return a text as it can be written to a stream: a terminal would obey the control characters of a text or model.

    There they are escaped, ESC as \x1b; a pipe or a file gets them as they are.
    """
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text) if stream.isatty() else text
