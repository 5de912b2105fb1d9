"""Matrices in int8: weights take one byte, and each row of a matrix has a scale.

On a GPU, a decode step of a few rows reads every weight once, and in a large model that takes most of its time. Only
weights are quantised there: inputs and sums keep their precision.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LARGEST = 127  # of the numbers that are stored, and -127


def row_scales(weight: Tensor) -> Tensor:
    """The scale of each row of a matrix: (F, D) -> (F,); the largest number of a row becomes LARGEST."""
    return weight.abs().amax(1).clamp(min=1e-12) / LARGEST


def quantise_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix (F, D) in int8, and the scale of each row (F,)."""
    scales = row_scales(weight)
    return (weight / scales[:, None]).round().to(torch.int8), scales


class Int8Linear(nn.Module):
    """Replaces a linear layer, whose matrix is freed."""

    quantised: Tensor  # (F, D)
    scale: Tensor  # (F,)

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        quantised, scale = quantise_rows(linear.weight.detach())
        self.register_buffer("quantised", quantised)
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        return scaled(F.linear(x, self.quantised.to(dtype)), self.scale, self.bias)


def scaled(products: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Turn products with quantised weights (..., F) into the results of the layer, in their dtype."""
    y = products * scale
    return (y if bias is None else y + bias).to(products.dtype)


def quantise(model: nn.Module) -> None:
    """Replace every linear layer in place. Embeddings stay as they are, also those that are tied to the logits."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, Int8Linear(child))
