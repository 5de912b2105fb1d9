"""The exercise `heads`: split channels into heads, and merge them."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model.attention import Attention, merge_heads


def reference(x: Tensor, heads: int) -> Tensor:
    """The project's own split."""
    return Attention(ModelConfig(d_model=x.size(-1), heads=heads)).split(x)


def cases() -> list[Case]:
    """Split, merge, and both."""
    x = torch.randn(2, 5, 12)
    return [
        call("split", "split (2, 5, 12) into 3 heads", x, 3),
        call("split", "as many heads as tokens", torch.randn(1, 4, 8), 4),
        call("merge", "merge (2, 3, 5, 4)", torch.randn(2, 3, 5, 4)),
        call("merge", "merge as many heads as tokens", torch.randn(1, 4, 4, 2)),
        Case("merge undoes split", lambda piece, given: piece.merge(piece.split(given, 3)), (x,)),
    ]


MISTAKES = (
    Mistake(
        "Heads are split by reshape, without a transpose",
        "(B, T, D) viewed as (B, H, T, K) mixes tokens: view it as (B, T, H, K) first, then exchange axes 1 and 2.",
        "x.view(batch, length, heads, size // heads).transpose(1, 2)",
        "x.reshape(batch, heads, length, size // heads)",
    ),
    Mistake(
        "The transpose after the split is missing",
        "The heads come before the tokens: (B, H, T, K). Exchange axes 1 and 2.",
        "size // heads).transpose(1, 2)",
        "size // heads)",
    ),
    Mistake(
        "The channels of a head are not neighbours",
        "Head 0 has channels 0 to K - 1: the view is (B, T, H, K), not (B, T, K, H).",
        "x.view(batch, length, heads, size // heads).transpose(1, 2)",
        "x.view(batch, length, size // heads, heads).permute(0, 3, 1, 2)",
    ),
    Mistake(
        "The number of heads and their size are exchanged",
        "`heads` is how many there are; each has D / heads channels.",
        "x.view(batch, length, heads, size // heads)",
        "x.view(batch, length, size // heads, heads)",
    ),
    Mistake(
        "Heads are merged by reshape, without a transpose",
        "The channels of a token have to be neighbours in memory: exchange axes 1 and 2 first.",
        "x.transpose(1, 2).flatten(2)",
        "x.reshape(x.size(0), x.size(2), -1)",
    ),
    Mistake(
        "The merged channels alternate between the heads",
        "First all channels of head 0, then all of head 1: (B, T, H, K), flattened from axis 2 on.",
        "x.transpose(1, 2).flatten(2)",
        "x.permute(0, 2, 3, 1).flatten(2)",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Split and merge in all attention of the demo."""
    from clearhead.model import attention

    def split(self: Attention, x: Tensor) -> Tensor:
        parts: Tensor = piece.split(x, x.size(-1) // self.head_size)
        return parts

    return [Patch(Attention, "split", split), Patch(attention, "merge_heads", piece.merge)]


EXERCISE = Exercise(
    name="heads",
    reference=SimpleNamespace(split=reference, merge=merge_heads),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "A view cuts an axis into two: (B, T, D) -> (B, T, H, K). It never changes the order in memory.",
        "transpose(1, 2) exchanges tokens and heads.",
        "merge goes back: transpose(1, 2), then flatten(2) joins the last two axes.",
    ),
    swap=swap,
)
