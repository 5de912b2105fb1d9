"""A console that prints text as it is: file names and data contain brackets and colons, which mean nothing here."""

from __future__ import annotations

from rich.console import Console


def plain_console(
    stderr: bool = False, width: int | None = None, soft_wrap: bool = False, quiet: bool = False
) -> Console:
    """Return a console in which `[bold]` and `:cat:` stay these characters; styles are given as `Text`."""
    return Console(
        stderr=stderr, width=width, soft_wrap=soft_wrap, quiet=quiet, highlight=False, markup=False, emoji=False
    )
