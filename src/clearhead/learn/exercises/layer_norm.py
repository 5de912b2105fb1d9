"""The exercise `layer-norm`."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.model.norm import LayerNorm


def reference(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    """The project's own norm."""
    norm = LayerNorm(x.size(-1), epsilon)
    norm.weight.data = weight
    assert norm.bias is not None
    norm.bias.data = bias
    return norm(x)


REFERENCE = SimpleNamespace(layer_norm=reference)


def cases() -> list[ExerciseCase]:
    """Plain, with a learned weight and bias, with a large epsilon, and one token."""
    x = torch.randn(2, 5, 8) * 3 + 1
    ones = torch.ones(8)
    zeros = torch.zeros(8)
    weight = torch.randn(8)
    bias = torch.randn(8)
    return [
        call("layer_norm", "mean 0 and standard deviation 1", x, ones, zeros),
        call("layer_norm", "a learned weight and bias", x, weight, bias),
        call("layer_norm", "a large epsilon", x, weight, bias, 2.0),
        call("layer_norm", "one token, all channels equal", torch.full((1, 1, 8), 3.0), weight, bias),
    ]


def swap(piece: Piece) -> list[Patch]:
    """All norms of the demo."""

    def forward(self: LayerNorm, x: Tensor) -> Tensor:
        normalised: Tensor = piece.layer_norm(x, self.weight, self.bias, self.epsilon)
        return normalised

    return [Patch(LayerNorm, "forward", forward)]
