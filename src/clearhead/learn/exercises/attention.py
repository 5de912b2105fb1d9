"""The exercise `attention`: the scaled dot product."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model.attention import Attention, causal_mask, masked_softmax


def reference(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """The project's own attention, spelled out."""
    scores = queries @ keys.mT / math.sqrt(queries.size(-1))
    mask = torch.ones((), dtype=torch.bool) if mask is None else mask
    return masked_softmax(scores, mask.expand_as(scores)) @ values


REFERENCE = SimpleNamespace(attention=reference)


def cases() -> list[ExerciseCase]:
    """Without a mask, with masks of several shapes, and a query that may attend to nothing."""
    queries = torch.randn(2, 3, 4, 8) * 2
    keys = torch.randn(2, 3, 5, 8)
    values = torch.randn(2, 3, 5, 8)
    causal = causal_mask(4, torch.device("cpu"))
    padding = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None, :]
    nothing = torch.tensor([[True] * 5, [False] * 5])[:, None, None, :]
    same_length = (queries, keys[:, :, :4], values[:, :, :4])
    return [
        call("attention", "without a mask", queries, keys, values),
        call("attention", "with a causal mask", *same_length, causal),
        call("attention", "with padding among the keys", queries, keys, values, padding),
        call("attention", "a query that may attend to nothing gives 0", queries, keys, values, nothing),
    ]


def swap(piece: Piece) -> list[Patch]:
    """All attention of the demo, where `causal` becomes a mask."""

    def attend(
        self: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        if causal:
            mask = causal_mask(queries.size(2), queries.device)
        mixed: Tensor = piece.attention(queries, self.repeat(keys), self.repeat(values), mask)
        return mixed

    return [Patch(Attention, "attend", attend)]
