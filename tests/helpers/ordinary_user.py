"""What a user without special rights meets, even if the tests are run by root, whom no permission stops."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def as_anybody() -> Iterator[None]:
    """Give up root's rights for a while."""
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
    """A temporary folder that everybody may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
