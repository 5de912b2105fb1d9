"""The exercise `layer-norm`."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model.norm import LayerNorm


def reference(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    """The project's own norm."""
    norm = LayerNorm(x.size(-1), epsilon)
    norm.weight.data = weight
    assert norm.bias is not None
    norm.bias.data = bias
    return norm(x)


def cases() -> list[Case]:
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


MEAN = "x.mean(dim=-1, keepdim=True)  # (B, T, 1)"
VARIANCE = "x.var(dim=-1, keepdim=True, correction=0)  # (B, T, 1)"
BOTH = f"    mean = {MEAN}\n    variance = {VARIANCE}\n"
RESULT = "(x - mean) / torch.sqrt(variance + epsilon) * weight + bias"
MISTAKES = (
    Mistake(
        "Mean and variance are taken over the tokens",
        "Each token is normalised alone, over its channels: the last axis, dim=-1.",
        BOTH,
        "    mean = x.mean(dim=1, keepdim=True)\n    variance = x.var(dim=1, keepdim=True, correction=0)\n",
    ),
    Mistake(
        "Mean and variance are taken over the batch",
        "That is BatchNorm. Here each token is normalised alone, over its channels: dim=-1.",
        BOTH,
        "    mean = x.mean(dim=(0, 1), keepdim=True)\n    variance = x.var(dim=(0, 1), keepdim=True, correction=0)\n",
    ),
    Mistake(
        "One mean and one variance for everything",
        "Each token has a mean and a variance: dim=-1, keepdim=True.",
        BOTH,
        "    mean = x.mean()\n    variance = x.var(correction=0)\n",
    ),
    Mistake(
        "The variance is divided by D - 1 (unbiased)",
        "LayerNorm divides by D, the biased variance: correction=0. That is not torch's default.",
        ", correction=0)  # (B, T, 1)",
        ")",
    ),
    Mistake(
        "The mean is not subtracted",
        "That is close to RMSNorm. LayerNorm subtracts the mean first.",
        "return (x - mean) /",
        "return x /",
    ),
    Mistake(
        "The variance is the mean of the squares",
        "The variance is the mean of the squared *differences* from the mean.",
        "x.var(dim=-1, keepdim=True, correction=0)",
        "(x * x).mean(dim=-1, keepdim=True)",
    ),
    Mistake(
        "The square root is missing",
        "Divide by the standard deviation, which is the square root of the variance.",
        "torch.sqrt(variance + epsilon)",
        "(variance + epsilon)",
    ),
    Mistake(
        "Epsilon is added outside the square root",
        "sqrt(variance + epsilon), not sqrt(variance) + epsilon.",
        "torch.sqrt(variance + epsilon)",
        "(torch.sqrt(variance) + epsilon)",
    ),
    Mistake(
        "Epsilon is missing",
        "Without it, a token whose channels are all equal becomes 0 / 0.",
        "torch.sqrt(variance + epsilon)",
        "torch.sqrt(variance)",
    ),
    Mistake(
        "Weight and bias are not used",
        "After normalising, multiply by weight and add bias.",
        " * weight + bias",
        "",
    ),
    Mistake("The bias is not added", "The last step is + bias.", " * weight + bias", " * weight"),
    Mistake(
        "The bias is added before the multiplication by the weight",
        "First weight, then bias: normalised · weight + bias.",
        RESULT,
        "((x - mean) / torch.sqrt(variance + epsilon) + bias) * weight",
    ),
    Mistake(
        "The mean has lost its axis",
        "keepdim=True leaves (B, T, 1), which broadcasts over the channels.",
        MEAN,
        "x.mean(dim=-1)",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """All norms of the demo."""

    def forward(self: LayerNorm, x: Tensor) -> Tensor:
        normalised: Tensor = piece.layer_norm(x, self.weight, self.bias, self.epsilon)
        return normalised

    return [Patch(LayerNorm, "forward", forward)]


EXERCISE = Exercise(
    name="layer-norm",
    reference=SimpleNamespace(layer_norm=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Mean and variance are taken over the last axis, with keepdim=True so that they broadcast.",
        "torch's var divides by D - 1 unless correction=0.",
        "(x - mean) / torch.sqrt(variance + epsilon), then weight, then bias.",
    ),
    swap=swap,
    settings="model.norm=layer",
)
