"""The exercise `feed-forward`."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, apply_module, borrowing
from clearhead.model.block import FeedForward


def reference(d_model: int, d_ff: int) -> FeedForward:
    """The project's own layer."""
    return FeedForward(ModelConfig(d_model=d_model, d_ff=d_ff, heads=1, activation="relu"))


def apply(piece: Piece, *inputs: Tensor) -> object:
    """A layer of 8 and 20 channels."""
    return apply_module(piece.FeedForward(8, 20), *inputs)


def cases() -> list[Case]:
    """One token, and several."""
    return [
        Case("one token", apply, (torch.randn(1, 1, 8),)),
        Case("a batch of sentences", apply, (torch.randn(2, 5, 8),)),
    ]


RESULT = "self.down(torch.relu(self.up(x)))"
MISTAKES = (
    Mistake(
        "The nonlinearity is missing",
        "Two linear layers in a row are one linear layer. A ReLU between them makes the difference.",
        RESULT,
        "self.down(self.up(x))",
    ),
    Mistake(
        "The ReLU comes after the second matrix",
        "It belongs between the two. The output may be negative: it is added to the residual stream.",
        RESULT,
        "torch.relu(self.down(self.up(x)))",
    ),
    Mistake(
        "There is a second ReLU after the second matrix",
        "Only one, between the two. The output may be negative: it is added to the residual stream.",
        RESULT,
        "torch.relu(self.down(torch.relu(self.up(x))))",
    ),
    Mistake(
        "The ReLU comes before the first matrix",
        "It belongs between the two matrices: down(relu(up(x))).",
        RESULT,
        "self.down(self.up(torch.relu(x)))",
    ),
    Mistake(
        "The nonlinearity is GELU",
        "The paper has ReLU: max(0, x). GELU came later, with GPT and BERT.",
        "torch.relu(self.up(x))",
        "nn.functional.gelu(self.up(x))",
    ),
    Mistake(
        "The input is added",
        "The residual connection belongs to the block, which adds x itself.",
        RESULT,
        "x + self.down(torch.relu(self.up(x)))",
    ),
    Mistake(
        "Tokens are mixed",
        "Each token is treated alone. nn.Linear works on the last axis, whatever comes before it.",
        RESULT,
        "self.down(torch.relu(self.up(x.mean(dim=1, keepdim=True).expand_as(x))))",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """All feed-forward layers of the demo, with ReLU."""

    def forward(self: FeedForward, x: Tensor) -> Tensor:
        result: Tensor = borrowing(piece.FeedForward, self).forward(x)
        return result

    return [Patch(FeedForward, "forward", forward)]


EXERCISE = Exercise(
    name="feed-forward",
    reference=SimpleNamespace(FeedForward=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Read the formula from the inside: W₁ first, then max(0, ...), then W₂.",
        "self.up is W₁ with its bias, self.down is W₂, torch.relu is max(0, x).",
    ),
    swap=swap,
    settings="model.activation=relu",
)
