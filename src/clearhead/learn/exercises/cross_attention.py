"""The exercise `cross-attention`: target tokens read the source."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, apply, borrowing
from clearhead.model.attention import Attention, KVCache
from clearhead.model.block import Block


class ReferenceCrossAttention(Attention):
    """The project's own attention, called as the exercise has it."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__(ModelConfig(d_model=d_model, heads=heads))

    def forward(self, x: Tensor, memory: Tensor, memory_real: Tensor) -> Tensor:  # type: ignore[override]
        """(B, T, D) -> (B, T, D)."""
        return super().forward(x, memory, memory_real[:, None, None, :])


REFERENCE = SimpleNamespace(CrossAttention=ReferenceCrossAttention)


def cases() -> list[ExerciseCase]:
    """As many target tokens as source tokens, fewer, and padding."""
    x = torch.randn(2, 4, 8)
    memory = torch.randn(2, 6, 8)
    real = torch.ones(2, 6, dtype=torch.bool)
    padded = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return [
        apply("CrossAttention", (8, 2), "as many target as source tokens", x, memory[:, :4], real[:, :4]),
        apply("CrossAttention", (8, 2), "more source than target tokens", x, memory, real),
        apply("CrossAttention", (8, 2), "with padding in the source", x, memory, padded),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Cross-attention of the demo, with the student's forward and the project's parameters."""

    def attend_to_memory(self: Block, x: Tensor, memory: Tensor, mask: Tensor | None, _: KVCache | None) -> Tensor:
        real = memory.new_ones(memory.shape[:2], dtype=torch.bool) if mask is None else mask[:, 0, 0]
        read: Tensor = borrowing(piece.CrossAttention, self.cross_attention).forward(x, memory, real)
        return read

    return [Patch(Block, "attend_to_memory", attend_to_memory)]
