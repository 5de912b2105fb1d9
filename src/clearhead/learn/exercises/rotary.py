"""The exercise `rotary`: turn queries and keys by their positions."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model import attention
from clearhead.model.stack import RotaryPosition


def reference(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """The project's own rotation."""
    size = x.size(-1)
    angles = RotaryPosition(ModelConfig(d_model=size, heads=1, position="rotary", rotary_base=base))
    return attention.rotate(x, angles(positions, x.dtype))


REFERENCE = SimpleNamespace(rotate=reference)


def cases() -> list[ExerciseCase]:
    """Position 0, which turns nothing; several positions; another base; positions that do not start at 0."""
    x = torch.randn(2, 3, 5, 8)
    return [
        call("rotate", "position 0 turns nothing", x[:, :, :1], torch.tensor([0])),
        call("rotate", "position 1, one pair of channels", torch.randn(1, 1, 1, 2), torch.tensor([1])),
        call("rotate", "five positions, eight channels", x, torch.arange(5)),
        call("rotate", "positions of a later step", x, torch.arange(40, 45)),
        call("rotate", "another base", x, torch.arange(5), 500.0),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Let the position module pass positions on, and attention turn by the student's function."""

    def forward(_: RotaryPosition, positions: Tensor, __: torch.dtype) -> Tensor:
        return positions

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = piece.rotate(x, positions)
        return turned

    return [Patch(RotaryPosition, "forward", forward), Patch(attention, "rotate", rotate)]
