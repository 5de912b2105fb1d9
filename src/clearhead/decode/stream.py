"""Text while it is written: as early as possible, but no incomplete character."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
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
        self.bytes = getincrementaldecoder("utf8")("replace")  # of a byte-level tokenizer
        self.pending = tokenizer.open_text(prompt)  # of another one: all ids
        self.text = tokenizer.decode(self.pending)
        self.returned = len(self.text)  # characters
        self.start = -len(self.text)  # where `text`, or what the next byte adds, begins in the text after the prompt
        self.offset = 0  # where the newest token begins in it

    def push(self, number: int) -> str:
        """Return the text that one more token adds; empty if a character is still incomplete."""
        if self.tokenizer.byte_level:
            before = self._incomplete()
            added = self.bytes.decode(self.tokenizer.token_bytes(number))
            self.offset = self.start + unchanged(before, added + self._incomplete())
            self.start += len(added)
            return added
        self.pending.append(number)
        before, self.text = self.text, self.tokenizer.decode(self.pending)
        same = unchanged(before, self.text)
        self.offset = self.start + same
        return "" if self.text.endswith(INCOMPLETE) else self._up_to(same)

    def finish(self) -> str:
        """Return the rest of the text."""
        return self.bytes.decode(b"", final=True) + self._up_to(len(self.text))

    def _incomplete(self) -> str:
        """What the bytes of an incomplete character would decode to."""
        return INCOMPLETE if self.bytes.getstate()[0] else ""

    def _up_to(self, length: int) -> str:
        """Return the part of the text that was not returned yet."""
        added = self.text[self.returned : length]
        self.returned += len(added)
        return added


def unchanged(before: str, after: str) -> int:
    """How many characters of a text one more token has not changed; it may have continued an incomplete one."""
    same = len(os.path.commonprefix([before, after]))  # noqa: RUF071 - of characters
    return same - (before == after and after.endswith(INCOMPLETE))


def stream_text(ids: Iterable[int], tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> Iterator[str]:
    """Yield what each token adds to the text after the prompt."""
    stream = TextStream(tokenizer, prompt)
    for number in ids:
        if added := stream.push(number):
            yield added
    if rest := stream.finish():
        yield rest
