"""The exercise `attention`: the scaled dot product."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model.attention import Attention, causal_mask, masked_softmax


def reference(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """The project's own attention, spelled out."""
    scores = queries @ keys.mT / math.sqrt(queries.size(-1))
    mask = torch.ones((), dtype=torch.bool) if mask is None else mask
    return masked_softmax(scores, mask.expand_as(scores)) @ values


def cases() -> list[Case]:
    """Without a mask, with masks of several shapes, and a query that may attend to nothing."""
    queries = torch.randn(2, 3, 4, 8) * 2
    keys = torch.randn(2, 3, 5, 8)
    values = torch.randn(2, 3, 5, 8)
    causal = causal_mask(4, torch.device("cpu"))
    padding = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None, :]
    nothing = torch.tensor([[True] * 5, [False] * 5])[:, None, None, :]
    same_length = (queries, keys[:, :, :4], values[:, :, :4])
    return [
        call("attention", "without a mask", queries, keys, values),
        call("attention", "with a causal mask", *same_length, causal),
        call("attention", "with padding among the keys", queries, keys, values, padding),
        call("attention", "a query that may attend to nothing gives 0", queries, keys, values, nothing),
    ]


MASKED = """scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
"""
MISTAKES = (
    Mistake(
        "The division by sqrt(d_k) is missing",
        "Divide the scores by the square root of the number of channels of a key, before the softmax.",
        " / math.sqrt(queries.size(-1))",
        "",
    ),
    Mistake(
        "The scores are divided by d_k, not by its square root",
        "The dot product of d_k random numbers has standard deviation sqrt(d_k): that is what to divide by.",
        " / math.sqrt(queries.size(-1))",
        " / queries.size(-1)",
    ),
    Mistake(
        "The scores are divided by the square root of the wrong size",
        "d_k is the last axis of the queries, not the number of tokens.",
        " / math.sqrt(queries.size(-1))",
        " / math.sqrt(queries.size(-2))",
    ),
    Mistake(
        "The weights are divided by sqrt(d_k), not the scores",
        "Divide before the softmax: afterwards the weights of a query no longer sum to 1.",
        MASKED,
        MASKED.replace(
            "scores.softmax(dim=-1)",
            "(scores * math.sqrt(queries.size(-1))).softmax(dim=-1) / math.sqrt(queries.size(-1))",
        ),
    ),
    Mistake(
        "The softmax runs over the queries",
        "Each query spreads its weight over the keys: the softmax runs over the last axis.",
        "softmax(dim=-1)",
        "softmax(dim=-2)",
    ),
    Mistake(
        "The softmax runs over the heads",
        "Each head is alone, and each query spreads its weight over the keys: the softmax runs over the last axis.",
        "softmax(dim=-1)",
        "softmax(dim=1)",
    ),
    Mistake(
        "The softmax is missing",
        "Scores become weights, positive and with sum 1, by a softmax over the keys.",
        "scores.softmax(dim=-1)",
        "scores",
    ),
    Mistake(
        "The mask is inverted",
        "True means: may attend. The scores to change are those where the mask is False: ~mask.",
        MASKED,
        MASKED.replace("~mask", "mask").replace("weights, 0.0", "0.0, weights"),
    ),
    Mistake(  # the same, without the last step
        "The mask is inverted",
        "True means: may attend. The scores to change are those where the mask is False: ~mask.",
        MASKED,
        "scores = scores.masked_fill(mask, -math.inf)\n    weights = scores.softmax(dim=-1)\n",
    ),
    Mistake(
        "The mask is ignored",
        "Where the mask is False, the weight has to be 0.",
        MASKED,
        "pass\n    weights = scores.softmax(dim=-1)\n",
    ),
    Mistake(
        "Masked scores are 0 instead of -inf",
        "exp(0) is 1: such a key still gets weight. exp(-inf) is 0.",
        MASKED,
        "scores = scores.masked_fill(~mask, 0.0)\n    weights = scores.softmax(dim=-1)\n",
    ),
    Mistake(
        "A query that may attend to nothing attends to everything",
        "The same number in all scores gives equal weights. Set the weights of masked keys to 0: torch.where.",
        MASKED,
        "scores = scores.masked_fill(~mask, -1e9)\n    weights = scores.softmax(dim=-1)\n",
    ),
    Mistake(
        "The mask is applied after the softmax",
        "Weights that are set to 0 afterwards leave a sum below 1: mask the scores, before the softmax.",
        "scores = scores.masked_fill(~mask, -math.inf)",
        "pass",
    ),
    Mistake(
        "A query that may attend to nothing becomes NaN",
        "A softmax of nothing but -inf is 0 / 0. Set the weights of masked keys to 0 after the softmax: torch.where.",
        "    if mask is not None:\n        weights = torch.where(mask, weights, 0.0)\n",
        "",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """All attention of the demo, where `causal` becomes a mask."""

    def attend(
        self: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        if causal:
            mask = causal_mask(queries.size(2), queries.device)
        mixed: Tensor = piece.attention(queries, self.repeat(keys), self.repeat(values), mask)
        return mixed

    return [Patch(Attention, "attend", attend)]


EXERCISE = Exercise(
    name="attention",
    reference=SimpleNamespace(attention=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Three lines: scores (B, H, T, S), weights (B, H, T, S), result (B, H, T, K). keys.mT swaps the last two axes.",
        "A masked score becomes -inf before the softmax: scores.masked_fill(~mask, -math.inf).",
        "A row of nothing but -inf becomes NaN in the softmax; torch.where(mask, weights, 0.0) turns it into zeros.",
    ),
    swap=swap,
)
