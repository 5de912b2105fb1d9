"""The exercise `heads`: split channels into heads, and merge them."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model.attention import Attention, merge_heads


def reference(x: Tensor, heads: int) -> Tensor:
    """The project's own split."""
    return Attention(ModelConfig(d_model=x.size(-1), heads=heads)).split(x)


REFERENCE = SimpleNamespace(split=reference, merge=merge_heads)


def cases() -> list[ExerciseCase]:
    """Split, merge, and both."""
    x = torch.randn(2, 5, 12)
    return [
        call("split", "split (2, 5, 12) into 3 heads", x, 3),
        call("split", "as many heads as tokens", torch.randn(1, 4, 8), 4),
        call("merge", "merge (2, 3, 5, 4)", torch.randn(2, 3, 5, 4)),
        call("merge", "merge as many heads as tokens", torch.randn(1, 4, 4, 2)),
        ExerciseCase("merge undoes split", lambda piece, given: piece.merge(piece.split(given, 3)), (x,)),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Split and merge in all attention of the demo."""
    from clearhead.model import attention

    def split(self: Attention, x: Tensor) -> Tensor:
        parts: Tensor = piece.split(x, x.size(-1) // self.head_size)
        return parts

    return [Patch(Attention, "split", split), Patch(attention, "merge_heads", piece.merge)]
