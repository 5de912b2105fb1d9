"""The exercise `causal-mask`: which token may attend to which."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model.attention import Attention, causal_mask
from clearhead.model.cache import past_mask


def reference(length: int) -> Tensor:
    """The project's own causal mask."""
    return causal_mask(length, torch.device("cpu"))


def padded_reference(real: Tensor) -> Tensor:
    """The project's own mask of a decoder with padding."""
    return past_mask(real, torch.arange(real.size(1)))


REFERENCE = SimpleNamespace(causal_mask=reference, padded_causal_mask=padded_reference)


def cases() -> list[ExerciseCase]:
    """Several lengths; padding on the right, on the left, and none."""
    right = torch.tensor([[True, True, True, True], [True, True, False, False]])
    left = torch.tensor([[True, True, True, True, True], [False, False, True, True, True]])
    return [
        call("causal_mask", "four tokens", 4),
        call("causal_mask", "one token", 1),
        call("padded_causal_mask", "no padding", torch.ones(2, 3, dtype=torch.bool)),
        call("padded_causal_mask", "padding on the right", right),
        call("padded_causal_mask", "padding on the left", left),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The student's mask wherever the demo's decoder attends causally."""
    attend = Attention.attend

    def masked(
        self: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        own = piece.causal_mask(queries.size(2)) if causal else mask
        return attend(self, queries, keys, values, own, False)

    return [Patch(Attention, "attend", masked)]
