"""Matrices in int8: weights take one byte, and each row of a matrix has a scale.

On a GPU, a decode step of a few rows reads every weight once, and in a large model that takes most of its time. Only
weights are quantised there: inputs and sums keep their precision.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.fast.joined import linear_layers

INT8_MAX = 127  # numbers from -127 to 127 are stored


def row_scales(weight: Tensor) -> Tensor:
    """The scale of each row of a matrix: (F, D) -> (F,); the largest number of a row becomes INT8_MAX."""
    return weight.abs().amax(1).clamp(min=1e-12) / INT8_MAX


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


class JoinedInt8:
    """Quantised layers that read the same input, as one matrix; their own weights become parts of it."""

    def __init__(self, linears: Sequence[Int8Linear], dtype: torch.dtype) -> None:
        self.weight = torch.cat([linear.quantised for linear in linears])
        self.scale = torch.cat([linear.scale for linear in linears])
        biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
        self.bias = torch.cat(biases).to(dtype) if biases else None
        for linear, part in zip(
            linears, torch.split(self.weight, [each.out_features for each in linears]), strict=True
        ):
            linear.quantised = part


def scaled(products: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Turn products with quantised weights (..., F) into the results of the layer, in their dtype."""
    y = products * scale
    return (y if bias is None else y + bias).to(products.dtype)


def quantise(model: nn.Module) -> None:
    """Replace every linear layer in place. Embeddings stay as they are, also those that are tied to the logits."""
    for parent, name in linear_layers(model):
        setattr(parent, name, Int8Linear(getattr(parent, name)))
