"""Run code as a user without root's permissions, even if the tests are run by root."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Drop root's permissions inside a `with` block."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def folder_for_all() -> Iterator[Path]:
    """A temporary folder that every user may enter, unlike pytest's `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
