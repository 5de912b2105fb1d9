"""Run the command line in this process, in a separate process, or in a terminal."""

from __future__ import annotations

import io
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TRAINED = Path(__file__).parents[1] / "runs" / "format-1"
Said = tuple[list[str], str, int]  # lines of stdout, stderr, exit code
Verb = Callable[..., Said]


class Terminal(io.StringIO):
    """What a terminal is sent; stderr while it is entered."""

    def isatty(self) -> bool:
        return True

    def __enter__(self) -> Terminal:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(sys, "stderr", self)
        self.patch.setenv("TERM", "xterm")
        self.patch.setenv("COLUMNS", "100")
        return self

    def __exit__(self, *_: object) -> None:
        self.patch.undo()


def start(*arguments: object, files: int = 0, **streams: int | io.IOBase) -> subprocess.Popen[bytes]:
    """Start a command, for tests that read and write while it runs; with `files`, it can open no more than that."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "clearhead", *map(str, arguments)]

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in a background job of a shell, and by its children
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    return subprocess.Popen(command, env=environment, preexec_fn=prepare, **streams)  # type: ignore[call-overload]


def read_until(terminal: int, pattern: bytes) -> bytes:
    """Read from a terminal until its output matches a pattern; return the output."""
    seen = b""
    while not re.search(pattern, seen, re.DOTALL):
        seen += os.read(terminal, 1 << 16)
    return seen
