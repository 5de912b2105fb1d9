"""Text while it is written: as early as possible, but no incomplete character."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from clearhead.text.tokenizer import Tokenizer

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what the first bytes of a character decode to


def stream_text(ids: Iterable[int], tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> Iterator[str]:
    """Yield what each token adds to the text; all of it joined is what the ids decode to after the prompt.

    A character of several tokens is yielded when it is complete. Tokens of a byte-level tokenizer are decoded once, so
    that a token costs the same however long the text is. With other tokenizers a token may change how the one before
    it is written ("l '" becomes "l'arbre"), so only text that the newest token has not changed is yielded.
    """
    pending = tokenizer.open_text(prompt)
    yielded = tokenizer.decode(pending)
    previous = yielded
    for number in ids:
        pending.append(number)
        text = tokenizer.decode(pending)
        if text.endswith(INCOMPLETE):
            continue
        final = text if tokenizer.byte_level else os.path.commonprefix([previous, text])  # noqa: RUF071 - of characters
        if len(final) > len(yielded):
            yield final[len(yielded) :]
        if tokenizer.byte_level:
            pending = []
        else:
            yielded = final
            previous = text
    rest = tokenizer.decode(pending)
    if len(rest) > len(yielded):
        yield rest[len(yielded) :]
