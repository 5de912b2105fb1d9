"""Linear layers for training a small model in bfloat16, where a step is hundreds of kernels of a few microseconds.

Autocast casts every weight and every gradient in a kernel of its own, and sums the gradient of each bias slowly. Here
all weights are cast together once a step, and gradients come out of their products in float32.

Shapes: N tokens, D inputs, F outputs, P parts of the tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor, nn

ROWS = 128  # that are read at once
COLUMNS = 64
PARTS = 16  # into which the rows of a sum are divided


@triton.jit(do_not_specialize=["N", "share"])  # one kernel for all batches
def column_sums_kernel(X, OUT, N, F, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(1) * share
    end = tl.minimum(N, begin + share)
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < end)[:, None] & (column < F)[None, :]
        x = tl.load(X + row[:, None].to(tl.int64) * F + column[None, :], mask=inside, other=0.0)
        total += tl.sum(x.to(tl.float32), 0)
    tl.store(OUT + tl.program_id(1) * F + column, total, mask=column < F)


def column_sums(x: Tensor) -> Tensor:
    """`x.sum(0, dtype=torch.float32)` of (N, F), always added in the same order."""
    x = x.contiguous()
    rows, columns = x.shape
    parts = min(PARTS, triton.cdiv(rows, ROWS))
    partial = torch.empty(parts, columns, device=x.device)
    column_sums_kernel[(triton.cdiv(columns, COLUMNS), parts)](
        x, partial, rows, columns, triton.cdiv(rows, parts), ROWS, COLUMNS, num_warps=4
    )
    return partial.sum(0)


def product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """The product of two bfloat16 matrices in float32 or bfloat16, without a kernel that converts it."""
    return torch.mm(a, b) if dtype == a.dtype else torch.mm(a, b, out_dtype=dtype)


class LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with bfloat16 copies of W and b, and float32 gradients of W and b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, _weight: Tensor, _bias: Tensor | None, layer: HalfLinear) -> Tensor:
        """(..., D) -> (..., F) in bfloat16; the float32 parameters are given for their gradients only."""
        half = x.to(layer.half_weight.dtype)
        ctx.save_for_backward(half, layer.half_weight)
        ctx.dtype = x.dtype
        return F.linear(half, layer.half_weight, layer.half_bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        rows = gradient.flatten(0, -2)  # (N, F)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_x = product(rows, weight, ctx.dtype).view_as(x)
        if ctx.needs_input_grad[1]:
            of_weight = product(rows.T, x.flatten(0, -2), torch.float32)
        if ctx.needs_input_grad[2]:
            of_bias = column_sums(rows)
        return of_x, of_weight, of_bias, None


class HalfLinear(nn.Linear):
    """A linear layer that trains with copies of its weights; without gradients it computes as any other."""

    half_weight: Tensor
    half_bias: Tensor | None

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if not (self.training and torch.is_grad_enabled()):
            return F.linear(x, self.weight, self.bias)
        result: Tensor = LinearFunction.apply(x, self.weight, self.bias, self)
        return result


def use_half_linears(model: nn.Module) -> Callable[[], None]:
    """Turn the linear layers of a model into HalfLinear; return what copies their weights in each step."""
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    for layer in layers:
        layer.__class__ = HalfLinear
    halves = [layer for layer in layers if isinstance(layer, HalfLinear)]
    for layer in halves:
        layer.half_weight = layer.weight.detach().bfloat16()
        layer.half_bias = None if layer.bias is None else layer.bias.detach().bfloat16()
    copies = [layer.half_weight for layer in halves] + [t for layer in halves if (t := layer.half_bias) is not None]
    originals = [layer.weight.detach() for layer in halves] + [
        layer.bias.detach() for layer in halves if layer.bias is not None
    ]

    def refresh() -> None:
        torch._foreach_copy_(copies, originals)

    return refresh
