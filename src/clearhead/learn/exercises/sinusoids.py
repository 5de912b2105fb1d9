"""The exercise `sinusoids`: the paper's positions."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model.stack import SinusoidalPosition


def reference(length: int, d_model: int) -> Tensor:
    """The project's own sinusoids."""
    return SinusoidalPosition(ModelConfig(d_model=d_model, heads=1))(torch.arange(length), torch.float32)


def cases() -> list[Case]:
    """Several lengths and sizes."""
    return [
        call("sinusoids", "six positions of eight channels", 6, 8),
        call("sinusoids", "one position", 1, 4),
        call("sinusoids", "a hundred positions of 32 channels", 100, 32),
    ]


MISTAKES = (
    Mistake(
        "All sines come first, then all cosines",
        "They alternate: channel 0 is a sine, channel 1 the cosine of the same angle, channel 2 the next sine.",
        "    result[:, 0::2] = angles.sin()\n    result[:, 1::2] = angles.cos()\n",
        "    result = torch.cat([angles.sin(), angles.cos()], dim=-1)\n",
    ),
    Mistake(
        "Sine and cosine are exchanged",
        "Even channels are sines: at position 0 they are 0, and the odd channels are 1.",
        "    result[:, 0::2] = angles.sin()\n    result[:, 1::2] = angles.cos()\n",
        "    result[:, 0::2] = angles.cos()\n    result[:, 1::2] = angles.sin()\n",
    ),
    Mistake(
        "The exponent is i / D instead of 2i / D",
        "Pair i has the exponent 2i / D: torch.arange(0, D, 2) counts 0, 2, 4, ...",
        "(pairs / d_model)",
        "(pairs / 2 / d_model)",
    ),
    Mistake(
        "Positions are counted from 1",
        "The first token has position 0, where all sines are 0.",
        "torch.arange(length, dtype=torch.float32)",
        "torch.arange(1, length + 1, dtype=torch.float32)",
    ),
    Mistake(
        "The angle is multiplied by 10000^(2i/D) instead of divided",
        "Later channels turn more slowly: the position is divided by a number that grows with i.",
        "positions / 10_000",
        "positions * 10_000",
    ),
    Mistake(
        "Each channel has a frequency of its own",
        "A sine and the cosine beside it belong to the same pair i and have the same angle.",
        "    angles = positions / 10_000 ** (pairs / d_model)  # (T, D/2)\n",
        """    every = torch.arange(d_model, dtype=torch.float32)
    angles = positions / 10_000 ** (every / d_model)
    angles = torch.where(every % 2 == 0, angles.sin(), angles.cos())
    return angles
""",
    ),
    Mistake(  # the same, with twice the number of the channel
        "Each channel has a frequency of its own",
        "i counts pairs, not channels: channels 2i and 2i + 1 have the same angle. A position has D/2 angles.",
        "    angles = positions / 10_000 ** (pairs / d_model)  # (T, D/2)\n",
        """    every = torch.arange(d_model, dtype=torch.float32)
    angles = positions / 10_000 ** (2 * every / d_model)
    return torch.where(every % 2 == 0, angles.sin(), angles.cos())
""",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Positions 0, 1, ... of the student's table, in the demo with sinusoidal positions."""

    def forward(self: SinusoidalPosition, positions: Tensor, dtype: torch.dtype) -> Tensor:
        table: Tensor = piece.sinusoids(int(positions.max()) + 1, self.size)
        return table[positions].to(dtype)

    return [Patch(SinusoidalPosition, "forward", forward)]


EXERCISE = Exercise(
    name="sinusoids",
    reference=SimpleNamespace(sinusoids=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Compute all angles at once: a column of positions (T, 1) divided by a row of numbers (D/2,) gives (T, D/2).",
        "10_000 ** (torch.arange(0, D, 2) / D) is that row.",
        "result[:, 0::2] = ... writes the even channels, result[:, 1::2] = ... the odd ones.",
    ),
    swap=swap,
    settings="model.position=sinusoidal",
    gradient=False,
)
