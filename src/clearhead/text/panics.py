"""Panics of the Rust library `tokenizers`, which a damaged or hostile file can cause, as ordinary errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from clearhead.config import require


@contextmanager
def no_panic(problem: str) -> Iterator[None]:
    """Turn a panic of the Rust library, which is not an Exception, into a UserError."""
    try:
        yield
    except BaseException as error:
        require(type(error).__name__ != "PanicException", f"{problem}: {error}")
        raise


@contextmanager
def no_stderr() -> Iterator[None]:
    """Discard what is written to stderr, by any library: a panic prints several lines before it becomes an error."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
