"""The exercise `feed-forward`."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, apply, borrowing
from clearhead.model.block import FeedForward


def reference(d_model: int, d_ff: int) -> FeedForward:
    """The project's own layer."""
    return FeedForward(ModelConfig(d_model=d_model, d_ff=d_ff, heads=1, activation="relu"))


REFERENCE = SimpleNamespace(FeedForward=reference)


def cases() -> list[ExerciseCase]:
    """One token, and several."""
    return [
        apply("FeedForward", (8, 20), "one token", torch.randn(1, 1, 8)),
        apply("FeedForward", (8, 20), "a batch of sentences", torch.randn(2, 5, 8)),
    ]


def swap(piece: Piece) -> list[Patch]:
    """All feed-forward layers of the demo, with ReLU."""

    def forward(self: FeedForward, x: Tensor) -> Tensor:
        result: Tensor = borrowing(piece.FeedForward, self).forward(x)
        return result

    return [Patch(FeedForward, "forward", forward)]
