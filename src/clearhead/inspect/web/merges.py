"""How a tokenizer arrives at its tokens: byte-pair merges, replayed by the readable implementation in text/bpe.py."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import islice

from clearhead.text.bpe import BYTES, BytePairs, Merge, words
from clearhead.text.tokenizer import Tokenizer

MOST_WORDS = 60  # that are replayed


@lru_cache(maxsize=4)
def byte_pairs(tokenizer: Tokenizer) -> BytePairs | None:
    """The merges of a byte-level tokenizer; None for any other kind."""
    model = json.loads(tokenizer.backend.to_str())["model"]
    if model["type"] != "BPE" or not tokenizer.byte_level:
        return None
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    merges = [Merge(as_bytes(left), as_bytes(right), 0) for left, right in pairs]
    ids = {as_bytes(token): number for token, number in model["vocab"].items() if BYTES.keys() >= {*token}}
    return BytePairs(ids, merges)


def as_bytes(token: str) -> bytes:
    """The bytes that a token of a tokenizer file represents."""
    return bytes(BYTES[character] for character in token)


def replay(tokenizer: Tokenizer, text: str) -> list[list[list[str]]]:
    """For each word, its pieces from single bytes to tokens, merge by merge.

    Empty for a tokenizer whose tokens text/bpe.py does not reproduce: one that changes the text first, or splits words
    differently.
    """
    pairs = byte_pairs(tokenizer)
    if pairs is None:
        return []
    replayed = []
    for word in islice(words(text), MOST_WORDS):
        steps = list(pairs.steps(word))
        if [pairs.ids[piece] for piece in steps[-1]] != tokenizer.encode(word):
            return []
        replayed.append([[piece.decode(errors="backslashreplace") for piece in pieces] for pieces in steps])
    return replayed
