"""Linear layers for training a small model in bfloat16, where a step is hundreds of kernels of a few microseconds.

Autocast casts every weight and every gradient in a kernel of its own, and sums the gradient of each bias slowly. Here
all weights are cast together once a step, gradients of weights come out of their products in float32, and layers with
the same input (query, key and value) are one product.

Shapes: N tokens, D inputs, F outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.fast.joined import Copy, JoinedLinear, SharedOutputs, layers_by_input, refresh


def column_sums(x: Tensor) -> Tensor:
    """`x.sum(0, dtype=torch.float32)` of (N, F) in bfloat16, as a product, the fastest way to compute it."""
    return torch.mm(torch.ones(1, x.size(0), dtype=x.dtype, device=x.device), x, out_dtype=torch.float32)[0]


def product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """The product of two bfloat16 matrices in float32 or bfloat16, without a kernel that converts it."""
    return torch.mm(a, b) if dtype == a.dtype else torch.mm(a, b, out_dtype=dtype)


class LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with bfloat16 copies of W and b, and float32 gradients of W and b, which may join several layers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, joined: JoinedLinear, *_parameters: Tensor | None) -> Tensor:
        """(..., D) -> (..., F) in bfloat16; the float32 parameters are given for their gradients only."""
        half = x.to(joined.weight.dtype)
        ctx.save_for_backward(half, joined.weight)
        ctx.dtype = x.dtype
        ctx.sizes = joined.sizes
        return F.linear(half, joined.weight, joined.bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The gradients of x, and of the weight and the bias of each layer."""
        x, weight = ctx.saved_tensors
        rows = gradient.flatten(0, -2)  # (N, F)
        _, _, *needed = ctx.needs_input_grad
        none = [None] * len(ctx.sizes)
        of_x = product(rows, weight, ctx.dtype).view_as(x) if ctx.needs_input_grad[0] else None
        of_weights: Any = none
        if any(needed[: len(none)]):
            of_weights = torch.split(product(rows.T, x.flatten(0, -2), torch.float32), ctx.sizes)
        of_biases = torch.split(column_sums(rows), ctx.sizes) if any(needed[len(none) :]) else none
        return of_x, None, *of_weights, *of_biases


class HalfLinear(nn.Linear):
    """A linear layer that trains with copies of its weights; without gradients it computes as any other."""

    shared: SharedOutputs
    index: int  # of this layer among those that share their input

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if not (self.training and torch.is_grad_enabled()):
            return F.linear(x, self.weight, self.bias)
        return self.shared.of(x, self.index)


def use_half_linears(model: nn.Module) -> Callable[[], None]:
    """Turn the linear layers of a model into HalfLinear; return what copies their weights in each step."""
    copies: list[Copy] = []
    for places in layers_by_input(model):
        layers = [getattr(parent, name) for parent, name in places]
        groups = [layers] if all(type(layer) is nn.Linear for layer in layers) else [[layer] for layer in layers]
        for group in groups:
            if type(group[0]) is nn.Linear:
                copies += share(group)
    return lambda: refresh(copies)


def share(layers: Sequence[nn.Linear]) -> Iterator[Copy]:
    """Let layers with the same input compute their outputs together; return the copies of their parameters."""
    joined = JoinedLinear(layers, torch.bfloat16)
    parameters = [layer.weight for layer in layers] + [layer.bias for layer in layers]
    shared = SharedOutputs(lambda x: LinearFunction.apply(x, joined, *parameters), joined.sizes)
    for index, layer in enumerate(layers):
        layer.__class__ = HalfLinear
        assert isinstance(layer, HalfLinear)
        layer.shared = shared
        layer.index = index
    return joined.copies()
