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

from clearhead.model.block import Block


def column_sums(x: Tensor) -> Tensor:
    """`x.sum(0, dtype=torch.float32)` of (N, F) in bfloat16, as a product, which is faster than our own kernel was."""
    return torch.mm(torch.ones(1, x.size(0), dtype=x.dtype, device=x.device), x, out_dtype=torch.float32)[0]


def product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """The product of two bfloat16 matrices in float32 or bfloat16, without a kernel that converts it."""
    return torch.mm(a, b) if dtype == a.dtype else torch.mm(a, b, out_dtype=dtype)


class LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with bfloat16 copies of W and b, and float32 gradients of W and b, which may join several layers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, joined: JoinedCopies, *_parameters: Tensor | None) -> Tensor:
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


class JoinedCopies:
    """bfloat16 copies of the parameters of layers with the same input, as one weight and one bias."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.sizes = [layer.out_features for layer in layers]
        self.parameters = [layer.weight for layer in layers] + [layer.bias for layer in layers]
        self.weight = torch.cat([layer.weight.detach() for layer in layers]).bfloat16()
        biases = [layer.bias.detach() for layer in layers if layer.bias is not None]
        self.bias = torch.cat(biases).bfloat16() if biases else None
        self.outputs: dict[int, Tensor] = {}  # by layer: computed with those of another layer, and not yet asked for
        self.input: Tensor | None = None  # what they were computed from

    def copies(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each part of the copies, and the parameter that it is a copy of."""
        for whole, parameters in ((self.weight, self.parameters), (self.bias, self.parameters[len(self.sizes) :])):
            if whole is not None:
                yield from zip(torch.split(whole, self.sizes), parameters, strict=False)

    def output(self, x: Tensor, number: int) -> Tensor:
        """The output of one of the layers; those of all are computed when the first is asked for."""
        if x is not self.input or number not in self.outputs:
            joined: Tensor = LinearFunction.apply(x, self, *self.parameters)
            if len(self.sizes) == 1:
                return joined
            self.outputs = dict(enumerate(torch.split(joined, self.sizes, dim=-1)))
            self.input = x
        found = self.outputs.pop(number)
        if not self.outputs:
            self.input = None
        return found


class HalfLinear(nn.Linear):
    """A linear layer that trains with copies of its weights; without gradients it computes as any other."""

    joined: JoinedCopies
    number: int  # of this layer among the joined ones

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if not (self.training and torch.is_grad_enabled()):
            return F.linear(x, self.weight, self.bias)
        return self.joined.output(x, self.number)


def use_half_linears(model: nn.Module) -> Callable[[], None]:
    """Turn the linear layers of a model into HalfLinear; return what copies their weights in each step."""
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    groups = [group for group in same_inputs(model) if all(type(layer) is nn.Linear for layer in group)]
    taken = {id(layer) for group in groups for layer in group}
    groups += [[layer] for layer in layers if id(layer) not in taken]
    copies = []
    for group in groups:
        joined = JoinedCopies(group)
        copies += list(joined.copies())
        for number, layer in enumerate(group):
            layer.__class__ = HalfLinear
            assert isinstance(layer, HalfLinear)
            layer.joined = joined
            layer.number = number

    def refresh() -> None:
        torch._foreach_copy_([copy for copy, _ in copies], [parameter.detach() for _, parameter in copies])

    return refresh


def same_inputs(model: nn.Module) -> Iterator[list[nn.Linear]]:
    """Yield linear layers that are called with the same tensor one after the other."""
    for block in model.modules():
        if isinstance(block, Block):
            own = block.attention
            yield [own.query, own.key, own.value]
            if block.cross:
                yield [block.cross_attention.key, block.cross_attention.value]
            if block.feed_forward.gate is not None:
                yield [block.feed_forward.gate, block.feed_forward.up]
