"""Stop sequences: a text ends before the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.decode.stream import TextStream
from clearhead.text.tokenizer import Tokenizer


class StoppedText:
    """Decodes tokens up to a stop sequence; text that may be the beginning of one is held back."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stops: Sequence[str]) -> None:
        self.stream = TextStream(tokenizer, prompt)
        self.stops = [stop for stop in stops if stop]
        self.held = ""
        self.stopped = False

    def push(self, number: int) -> str:
        """Return what can be added to the text after one more token."""
        return self.cut(self.stream.push(number))

    def finish(self) -> str:
        """Return the rest of the text."""
        added = self.cut(self.stream.finish())
        return added if self.stopped else added + self.held

    def cut(self, added: str) -> str:
        """Return the text before a stop sequence, or what cannot belong to one."""
        text = self.held + added
        places = [place for stop in self.stops if (place := text.find(stop)) >= 0]
        if places:
            self.stopped = True
            self.held = ""
            return text[: min(places)]
        longest = max((overlap(text, stop) for stop in self.stops), default=0)
        self.held = text[len(text) - longest :]
        return text[: len(text) - longest]


def overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of a stop sequence."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
