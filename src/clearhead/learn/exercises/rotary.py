"""The exercise `rotary`: turn queries and keys by their positions."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model import attention
from clearhead.model.stack import RotaryPosition


def reference(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """The project's own rotation."""
    size = x.size(-1)
    angles = RotaryPosition(ModelConfig(d_model=size, heads=1, position="rotary", rotary_base=base))
    return attention.rotate(x, angles(positions, x.dtype))


def cases() -> list[Case]:
    """Position 0, which turns nothing; several positions; another base; positions that do not start at 0."""
    x = torch.randn(2, 3, 5, 8)
    return [
        call("rotate", "position 0 turns nothing", x[:, :, :1], torch.tensor([0])),
        call("rotate", "position 1, one pair of channels", torch.randn(1, 1, 1, 2), torch.tensor([1])),
        call("rotate", "five positions, eight channels", x, torch.arange(5)),
        call("rotate", "positions of a later step", x, torch.arange(40, 45)),
        call("rotate", "another base", x, torch.arange(5), 500.0),
    ]


MISTAKES = (
    Mistake(
        "Neighbouring channels are paired",
        "Here channel i is paired with channel i + K/2: cut the channels into two halves with chunk(2, dim=-1).",
        """    first, second = x.chunk(2, dim=-1)  # (B, H, T, K/2) each
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
""",
        """    first = x[..., 0::2]
    second = x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
""",
    ),
    Mistake(
        "It turns the other way",
        "(a, b) becomes (a cos - b sin, a sin + b cos): the minus belongs to the first half.",
        "[first * cos - second * sin, first * sin + second * cos]",
        "[first * cos + second * sin, second * cos - first * sin]",
    ),
    Mistake(
        "All pairs turn equally fast",
        "Pair i turns by position / base^(2i/K): the first pair fast, the last one slowly.",
        "/ base ** (pairs / size)",
        "/ base ** (0 * pairs)",
    ),
    Mistake(
        "The exponent is i / K instead of 2i / K",
        "torch.arange(0, K, 2) counts 0, 2, 4, ...: these are the 2i.",
        "base ** (pairs / size)",
        "base ** (pairs / 2 / size)",
    ),
    Mistake(
        "The exponent is 4i / K instead of 2i / K",
        "K is the number of channels, not the number of pairs, which is K/2.",
        "base ** (pairs / size)",
        "base ** (2 * pairs / size)",
    ),
    Mistake(
        "The first half is overwritten before the second is computed",
        "a sin + b cos needs the old a: compute both halves first, then put them together with torch.cat.",
        "    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)\n",
        "    first = first * cos - second * sin\n    second = first * sin + second * cos\n"
        "    return torch.cat([first, second], dim=-1)\n",
    ),
    Mistake(
        "The second half is not turned",
        "Both channels of a pair change: the second becomes a sin + b cos.",
        "first * sin + second * cos],",
        "second],",
    ),
    Mistake(
        "The position is the index in x, not the one that is given",
        "While text is generated, x is one token whose position is not 0: use `positions`.",
        "positions[:, None].to(x.dtype)",
        "torch.arange(x.size(2))[:, None].to(x.dtype)",
    ),
    Mistake(
        "The base is always 10000",
        "Use the argument `base`: models for long texts have larger ones.",
        "/ base ** (pairs / size)",
        "/ 10_000 ** (pairs / size)",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Let the position module pass positions on, and attention turn by the student's function."""

    def forward(_: RotaryPosition, positions: Tensor, __: torch.dtype) -> Tensor:
        return positions

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = piece.rotate(x, positions)
        return turned

    return [Patch(RotaryPosition, "forward", forward), Patch(attention, "rotate", rotate)]


EXERCISE = Exercise(
    name="rotary",
    reference=SimpleNamespace(rotate=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "The angles are a table (T, K/2): positions[:, None] divided by base ** (torch.arange(0, K, 2) / K).",
        "first, second = x.chunk(2, dim=-1) are the two channels of all pairs.",
        "torch.cat([new_first, new_second], dim=-1) puts the halves together again.",
    ),
    swap=swap,
    settings="model.position=rotary",
)
