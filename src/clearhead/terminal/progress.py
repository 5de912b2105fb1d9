"""Progress bars on stderr: drawn only if it is a terminal, and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


class Bar:
    """A progress bar; without a display, it does nothing."""

    def __init__(self, title: str, total: int | None, display: Progress | None) -> None:
        self.display = display
        if display:
            self.task = display.add_task(title, total=total)

    def advance(self, count: int = 1) -> None:
        """Move the bar forward."""
        if self.display:
            self.display.advance(self.task, count)

    def rename(self, title: str) -> None:
        """Change what stands before the bar."""
        if self.display:
            self.display.update(self.task, description=title)


@contextmanager
def progress_bar(
    title: str, total: int | None = None, unit: str = "", quiet: bool = False, delay: float = 0.0
) -> Iterator[Bar]:
    """Show a bar with a count of `unit`, if there is one, and the time so far; without a total, the bar only moves.

    With a delay in seconds, it is drawn only if the work takes longer.
    """
    if quiet or not sys.stderr.isatty():
        yield Bar(title, total, None)
        return
    # a tenth of a second, which only a terminal waits for
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from clearhead.terminal.console import plain_console

    count = "{task.completed:,}" if total is None else "{task.completed:,}/{task.total:,}"
    title_column = TextColumn("{task.description}", markup=False)
    columns = (title_column, BarColumn(), TextColumn(f"{count} {unit}" if unit else ""), TimeElapsedColumn())
    display = Progress(*columns, console=plain_console(stderr=True), transient=True)
    start = Timer(delay, display.start)
    start.start() if delay else display.start()
    try:
        yield Bar(title, total, display)
    finally:
        start.cancel()
        if start.ident:  # it was started, and may be drawing now
            start.join()
        display.live.stop()


def track(
    items: Iterable[T],
    title: str,
    total: int | None = None,
    unit: str = "",
    size: Callable[[T], int] = lambda _: 1,
    quiet: bool = False,
    delay: float = 0.0,
) -> Iterator[T]:
    """Yield the same items while a bar counts them; `size` is how many units an item stands for."""
    with progress_bar(title, total, unit, quiet, delay) as bar:
        for item in items:
            yield item
            bar.advance(size(item))
