"""The exercise `sinusoids`: the paper's positions."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model.stack import SinusoidalPosition


def reference(length: int, d_model: int) -> Tensor:
    """The project's own sinusoids."""
    return SinusoidalPosition(ModelConfig(d_model=d_model, heads=1))(torch.arange(length), torch.float32)


REFERENCE = SimpleNamespace(sinusoids=reference)


def cases() -> list[ExerciseCase]:
    """Several lengths and sizes."""
    return [
        call("sinusoids", "six positions of eight channels", 6, 8),
        call("sinusoids", "one position", 1, 4),
        call("sinusoids", "a hundred positions of 32 channels", 100, 32),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Positions 0, 1, ... of the student's table, in the demo with sinusoidal positions."""

    def forward(self: SinusoidalPosition, positions: Tensor, dtype: torch.dtype) -> Tensor:
        table: Tensor = piece.sinusoids(int(positions.max()) + 1, self.size)
        return table[positions].to(dtype)

    return [Patch(SinusoidalPosition, "forward", forward)]
