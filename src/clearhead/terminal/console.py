"""A console that prints text as it is: file names and data contain brackets and colons, which mean nothing here."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from clearhead.terminal.streams import harmless


class HarmlessConsole(Console):
    """A console that escapes the control characters of texts, so that they cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of what is printed; `control` marks those of the console itself, such as cursor movements."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=harmless(part.text, self.file))


def plain_console(
    stderr: bool = False, width: int | None = None, soft_wrap: bool = False, quiet: bool = False
) -> Console:
    """Return a console in which `[bold]` and `:cat:` stay these characters; styles are given as `Text`."""
    return HarmlessConsole(
        stderr=stderr, width=width, soft_wrap=soft_wrap, quiet=quiet, highlight=False, markup=False, emoji=False
    )
