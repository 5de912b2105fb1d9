"""How far an evaluation has come: a bar on stderr, if that is a terminal and somebody wants to know."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def watch(title: str, count: int, size: Callable[[T], int], quiet: bool) -> Callable[[Iterable[T]], Iterable[T]]:
    """What to let batches go through: it draws a bar of `count` things, of which each batch has `size`."""
    if quiet or not sys.stderr.isatty():
        return iter
    from rich.console import Console
    from rich.progress import Progress

    def watched(batches: Iterable[T]) -> Iterator[T]:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task(title, total=count)
            for batch in batches:
                yield batch
                progress.advance(bar, size(batch))

    return watched
