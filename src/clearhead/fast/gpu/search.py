"""The choice of the next tokens on a GPU: the `read` of a search in few kernels, where they can compute it."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.decode.beam import Beams
from clearhead.decode.search import TokenSearch, most_likely
from clearhead.decode.steps import Search
from clearhead.fast.kernels import usable


def read(search: Search, logits: Tensor) -> None:
    """`search.read(logits)`, with logits (B, V) in float32."""
    if usable(logits) and logits.dtype == torch.float32:
        if isinstance(search, Beams):
            return read_beams(search, logits)
        if isinstance(search, TokenSearch) and search.choose is most_likely and len(search.ending.end) <= 1:
            return read_greedily(search, logits)
    return search.read(logits)


def read_beams(beams: Beams, logits: Tensor) -> None:
    """`Beams.read`: five kernels instead of a hundred."""
    from clearhead.fast.kernels.beam import advance, best_candidates, can_advance

    if not can_advance(beams):
        return beams.read(logits)
    values, tokens = best_candidates(logits, beams.candidates)
    advance(beams, values, tokens)
    beams.length += 1
    return None


def read_greedily(search: TokenSearch, logits: Tensor) -> None:
    """`TokenSearch.read` of greedy search: three kernels."""
    from clearhead.fast.kernels.greedy import write_most_likely

    write_most_likely(search, logits)
    search.step += 1
