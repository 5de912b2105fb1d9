"""Tokens in colour, with bars between them so that they can be told apart without colour, too."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from clearhead.text.tokenizer import Tokenizer

BACKGROUNDS = tuple(f"black on bright_{colour}" for colour in ("cyan", "yellow", "green", "magenta"))


def visible(text: str) -> str:
    """Return the text as it can be printed: control characters, which could steer the terminal, are escaped."""
    return "".join("⏎" if c == "\n" else c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show_tokens(text: str, tokenizer: Tokenizer, ids: bool = False) -> Text:
    """Return the tokens of a text on alternating backgrounds, optionally with their ids; a newline ends the line."""
    from rich.text import Text  # takes a tenth of a second, so only if it is used

    shown = Text()
    pieces = tokenizer.pieces(text)
    for index, ((piece, number), background) in enumerate(zip(pieces, cycle(BACKGROUNDS), strict=False)):
        shown.append(visible(piece), style=background)
        if ids:
            shown.append(f" {number}", style="dim")
        if index + 1 < len(pieces):
            shown.append("\n" if piece.endswith("\n") else "│", style="dim")
    return shown
