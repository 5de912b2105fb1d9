"""Sub-word regularisation: the same text in several segmentations, so that words and their parts are learned together.

Every token of a byte-pair encoding but the single bytes was merged from two others. With `data.bpe_dropout = p`, each
token of a training text is replaced by those two with probability p, and so is each of the new tokens. BPE-dropout
(Provilkov et al., 2020) leaves out merges while a text is encoded; this undoes merges afterwards, which needs no second
tokenizer and depends on the seed alone.
"""

from __future__ import annotations

import numpy as np

from clearhead.config import require
from clearhead.data.plan import Ints, randoms
from clearhead.data.store import RaggedArray
from clearhead.text.tokenizer import Tokenizer

COPIES = 8  # segmentations of each text; after as many epochs, the first one comes again


def halves_of(tokenizer: Tokenizer, rate: float) -> Ints:
    """A table (V, 2) of the two tokens that each token was merged from; -1 for those that were not merged."""
    require(
        bool(tokenizer.halves),
        f"data.bpe_dropout = {rate}: this tokenizer has no merges to undo; set tokenizer.kind = 'bpe', or leave it out",
    )
    table = np.full((tokenizer.vocab, 2), -1, np.int64)
    table[list(tokenizer.halves)] = list(tokenizer.halves.values())
    return table


def in_segmentations(array: RaggedArray, tokenizer: Tokenizer, rate: float, key: tuple[int, int]) -> RaggedArray:
    """Repeat all rows COPIES times, with tokens split at random in each copy."""
    halves = halves_of(tokenizer, rate)
    end = int(array.offsets[-1])
    copies = [split(array, halves, rate, (*key, copy)) for copy in range(COPIES)]
    starts = np.cumsum([0, *(int(copy.offsets[-1]) for copy in copies)])
    offsets = [copy.offsets[:-1] + start for copy, start in zip(copies, starts, strict=False)]
    values = [*(copy.values for copy in copies), array.values[end:]]  # what follows the last row: see encode.py
    return RaggedArray(np.concatenate(values), np.concatenate([*offsets, starts[-1:]]))


def split(array: RaggedArray, halves: Ints, rate: float, key: tuple[int, ...]) -> RaggedArray:
    """Split each token with probability `rate`, and its parts recursively."""
    values = np.array(array.values[: int(array.offsets[-1])])
    offsets = np.array(array.offsets)
    new = np.arange(len(values))  # places of the tokens that may still be split: all, then the new ones
    for part in range(len(halves)):
        draws = randoms(len(values), *key, part)[new]
        chosen = new[(draws >> np.uint64(32)) < np.uint64(rate * 2**32)]
        chosen = chosen[halves[values[chosen], 0] >= 0]
        if not len(chosen):
            break
        pairs = halves[values[chosen]]
        left = chosen + np.arange(len(chosen))  # every token that is split moves all later ones by one
        values = np.insert(values, chosen, 0)
        values[left], values[left + 1] = pairs.T
        new = np.stack([left, left + 1], axis=1).ravel()
        offsets = offsets + np.searchsorted(chosen, offsets)
    return RaggedArray(values, offsets)
