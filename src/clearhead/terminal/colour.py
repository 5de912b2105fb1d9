"""Tokens in colour, with bars between them so that they can be told apart without colour, too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from clearhead.text.chat import Rendered
    from clearhead.text.tokenizer import Tokenizer

BACKGROUNDS = tuple(f"black on bright_{colour}" for colour in ("cyan", "yellow", "green", "magenta"))


def visible(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot control the terminal."""
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


def show_dialogue(rendered: Rendered, tokenizer: Tokenizer, bars: bool = False) -> Text:
    """Return an encoded conversation, a line per message; what is learned is green, between ⟦ and ⟧.

    With bars, tokens are separated.
    """
    from rich.text import Text

    shown = Text()
    for (role, _), *content in messages_of(rendered, tokenizer):
        shown.append(tokenizer.piece(role), style="bold cyan")
        for learn, run in groupby(content, key=itemgetter(1)):
            ids = [number for number, _ in run]
            text = "│".join(map(tokenizer.piece, ids)) if bars else tokenizer.decode(ids, keep_special=True)
            lines = visible(text).replace("⏎", "⏎\n")
            shown.append(f"⟦{lines}⟧" if learn else lines, style="black on green" if learn else "")
        shown.append("\n")
    shown.rstrip()
    return shown


def messages_of(rendered: Rendered, tokenizer: Tokenizer) -> Iterator[list[tuple[int, bool]]]:
    """Yield the tokens of each message, up to its <end>; the last message may be unfinished."""
    message: list[tuple[int, bool]] = []
    for number, learn in zip(rendered.ids, rendered.learn, strict=True):
        message.append((number, learn))
        if number == tokenizer.end:
            yield message
            message = []
    if message:
        yield message
