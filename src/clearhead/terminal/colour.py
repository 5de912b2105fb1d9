"""Tokens in colour, for the terminal; bars between them, so that they can be told apart without colour, too."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from rich.text import Text

BACKGROUNDS = tuple(f"black on bright_{colour}" for colour in ("cyan", "yellow", "green", "magenta"))  # in any terminal


def visible(text: str) -> str:
    """A text as it can be printed: nothing invisible, and nothing that would steer the terminal."""
    return "".join("⏎" if c == "\n" else c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show_tokens(text: str, tokenizer: Tokenizer, ids: bool = False) -> Text:
    """The tokens of a text on changing backgrounds, each with its id if wanted; a line ends after a newline."""
    from rich.text import Text  # a tenth of a second, paid by those who look

    shown = Text()
    pieces = tokenizer.pieces(text)
    for place, ((piece, number), background) in enumerate(zip(pieces, cycle(BACKGROUNDS), strict=False)):
        shown.append(visible(piece), style=background)
        if ids:
            shown.append(f" {number}", style="dim")
        if place + 1 < len(pieces):
            shown.append("\n" if piece.endswith("\n") else "│", style="dim")
    return shown
