"""Text while it is written: as early as possible, and never half a character."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from clearhead.text.tokenizer import Tokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"  # what bytes that are no whole character decode to


def as_text(ids: Iterable[int], tokenizer: Tokenizer) -> Iterator[str]:
    """What to append to the text, token by token; all of it joined is what the ids decode to.

    A character may take several tokens: nothing is said before it is whole. Where tokens are bytes, what has been said
    need not be decoded again, so that a token costs the same however long the text is. Elsewhere a token may change how
    the one before it is written ("l '" becomes "l'arbre"), so only what it has left as it was is said.
    """
    held: list[int] = []
    said = before = ""
    for number in ids:
        held.append(number)
        text = tokenizer.decode(held)
        if text.endswith(BROKEN):
            continue
        settled = text if tokenizer.byte_level else os.path.commonprefix([before, text])  # noqa: RUF071 - of characters
        if len(settled) > len(said):
            yield settled[len(said) :]
        held, said, before = ([], "", "") if tokenizer.byte_level else (held, settled, text)
    rest = tokenizer.decode(held)
    if len(rest) > len(said):
        yield rest[len(said) :]
