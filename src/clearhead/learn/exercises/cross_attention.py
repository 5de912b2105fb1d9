"""The exercise `cross-attention`: target tokens read the source."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, apply_module, borrowing
from clearhead.model.attention import Attention, KVCache
from clearhead.model.block import Block


class Reference(Attention):
    """The project's own attention, called as the exercise has it."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__(ModelConfig(d_model=d_model, heads=heads))

    def forward(self, x: Tensor, memory: Tensor, memory_real: Tensor) -> Tensor:  # type: ignore[override]
        """(B, T, D) -> (B, T, D)."""
        return super().forward(x, memory, memory_real[:, None, None, :])


def attend(piece: Piece, *inputs: Tensor) -> object:
    """Cross-attention of 8 channels and 2 heads."""
    return apply_module(piece.CrossAttention(8, 2), *inputs)


def cases() -> list[Case]:
    """As many target tokens as source tokens, fewer, and padding."""
    x = torch.randn(2, 4, 8)
    memory = torch.randn(2, 6, 8)
    real = torch.ones(2, 6, dtype=torch.bool)
    padded = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return [
        Case("as many target as source tokens", attend, (x, memory[:, :4], real[:, :4])),
        Case("more source than target tokens", attend, (x, memory, real)),
        Case("with padding in the source", attend, (x, memory, padded)),
    ]


MASKED = "        scores = scores.masked_fill(~memory_real[:, None, None, :], -math.inf)\n"
MISTAKES = (
    Mistake(
        "The queries come from the memory, keys and values from the target",
        "The decoder asks: queries from x. The encoder answers: keys and values from memory.",
        "self.query(x))  # (B, H, T, K)\n        keys = self.split(self.key(memory))  # (B, H, S, K)\n"
        "        values = self.split(self.value(memory))",
        "self.query(memory))\n        keys = self.split(self.key(x))\n        values = self.split(self.value(x))",
    ),
    Mistake(
        "The keys come from the target",
        "Keys and values belong together: both come from memory.",
        "self.key(memory)",
        "self.key(x)",
    ),
    Mistake(
        "The values come from the target",
        "What is read is the source: values come from memory, like the keys.",
        "self.value(memory)",
        "self.value(x)",
    ),
    Mistake(
        "Everything comes from the target: this is self-attention",
        "Keys and values come from memory, the encoder's output.",
        "keys = self.split(self.key(memory))  # (B, H, S, K)\n        values = self.split(self.value(memory))",
        "keys = self.split(self.key(x))\n        values = self.split(self.value(x))",
    ),
    Mistake(
        "Padding of the source is not ignored",
        "Where memory_real is False, the score becomes -inf: (B, S) -> (B, 1, 1, S) broadcasts over heads and queries.",
        MASKED,
        "",
    ),
    Mistake(
        "The mask is inverted",
        "memory_real is True at real tokens; the scores to change are the others: ~memory_real.",
        "masked_fill(~memory_real",
        "masked_fill(memory_real",
    ),
    Mistake(  # the same, where a query without any key gives 0
        "The mask is inverted",
        "memory_real is True at real tokens; the scores to change are the others: ~memory_real.",
        MASKED + "        weights = scores.softmax(dim=-1)\n",
        MASKED.replace("~memory_real", "memory_real") + "        weights = scores.softmax(dim=-1).nan_to_num()\n",
    ),
    Mistake(
        "A causal mask is used",
        "The source is known completely: each target token may attend to all of it.",
        MASKED,
        MASKED + "        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)\n",
    ),
    Mistake(
        "The last matrix is missing",
        "self.out combines what the heads have found; without it they are only put side by side.",
        "self.out(mixed.transpose(1, 2).flatten(2))",
        "mixed.transpose(1, 2).flatten(2)",
    ),
    Mistake(
        "The scores are divided by sqrt(d_model) instead of sqrt(d_k)",
        "Each head has d_k = d_model / heads channels; the dot product is over these.",
        "math.sqrt(self.head_size)",
        "math.sqrt(self.heads * self.head_size)",
    ),
    Mistake(
        "The division by sqrt(d_k) is missing",
        "Divide the scores by the square root of the size of a head, before the softmax.",
        " / math.sqrt(self.head_size)",
        "",
    ),
    Mistake(
        "Heads are merged by reshape, without a transpose",
        "(B, H, T, K) has to become (B, T, H, K) before the last two axes are joined.",
        "mixed.transpose(1, 2).flatten(2)",
        "mixed.reshape(x.shape)",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Cross-attention of the demo, with the student's forward and the project's parameters."""

    def attend_to_memory(self: Block, x: Tensor, memory: Tensor, mask: Tensor | None, _: KVCache | None) -> Tensor:
        real = memory.new_ones(memory.shape[:2], dtype=torch.bool) if mask is None else mask[:, 0, 0]
        read: Tensor = borrowing(piece.CrossAttention, self.cross_attention).forward(x, memory, real)
        return read

    return [Patch(Block, "attend_to_memory", attend_to_memory)]


EXERCISE = Exercise(
    name="cross-attention",
    reference=SimpleNamespace(CrossAttention=Reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "split is what you wrote for `heads`; the formula is what you wrote for `attention`.",
        "Only one thing is new: self.query reads x, self.key and self.value read memory.",
        "The mask of the source as (B, 1, 1, S): memory_real[:, None, None, :].",
    ),
    swap=swap,
)
