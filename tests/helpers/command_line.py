"""The command line as its users meet it: in this process, in one of its own, or in a terminal."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

TRAINED = Path(__file__).parents[1] / "runs" / "format-1"
Said = tuple[list[str], str, int]  # lines of stdout, stderr, exit code
Verb = Callable[..., Said]


def clearhead(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([sys.executable, "-m", "clearhead", *arguments], capture_output=True, text=True, timeout=120)


def start(*arguments: object, **streams: int | io.IOBase) -> subprocess.Popen[bytes]:
    """Start a command that the test talks with."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "clearhead", *map(str, arguments)]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a suite in the background of a shell has it ignored
    return subprocess.Popen(command, env=environment, preexec_fn=heed, **streams)  # type: ignore[call-overload]


def read_until(terminal: int, words: bytes) -> bytes:
    """What a terminal shows until it has shown some words."""
    seen = b""
    while not re.search(words, seen, re.DOTALL):
        seen += os.read(terminal, 1 << 16)
    return seen
