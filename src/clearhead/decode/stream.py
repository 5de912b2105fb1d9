"""Text while it is written: as early as possible, but no incomplete character."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from clearhead.text.tokenizer import Tokenizer

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what the first bytes of a character decode to


class TextStream:
    """Turns tokens into text one by one; all of it joined is what the ids decode to after the prompt.

    A character of several tokens is returned when it is complete. Tokens of a byte-level tokenizer are decoded once, so
    that a token costs the same however long the text is. With other tokenizers a token may change how the one before
    it is written ("l '" becomes "l'arbre"), so only text that the newest token has not changed is returned.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.pending = tokenizer.open_text(prompt)
        self.text = tokenizer.decode(self.pending)
        self.returned = self.text
        self.start = -len(self.text)  # where `text` begins in the whole text
        self.offset = 0  # where the newest token begins in the whole text

    def push(self, number: int) -> str:
        """Return the text that one more token adds; empty if a character is still incomplete."""
        self.pending.append(number)
        before, self.text = self.text, self.tokenizer.decode(self.pending)
        same = os.path.commonprefix([before, self.text])  # noqa: RUF071 - of characters
        incomplete = self.text.endswith(INCOMPLETE)
        self.offset = self.start + len(same) - (incomplete and self.text == before)  # a character has several tokens
        if incomplete:
            return ""
        if self.tokenizer.byte_level:
            added = self.text[len(self.returned) :]
            self.start += len(self.text)
            self.pending, self.text, self.returned = [], "", ""
            return added
        return self._up_to(same)

    def finish(self) -> str:
        """Return the rest of the text."""
        return self._up_to(self.text)

    def _up_to(self, text: str) -> str:
        """Return the part of the text that was not returned yet."""
        added = text[len(self.returned) :]
        self.returned = max(self.returned, text, key=len)
        return added


def stream_text(ids: Iterable[int], tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> Iterator[str]:
    """Yield what each token adds to the text after the prompt."""
    stream = TextStream(tokenizer, prompt)
    for number in ids:
        if added := stream.push(number):
            yield added
    if rest := stream.finish():
        yield rest
