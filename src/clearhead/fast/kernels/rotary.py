"""Rotary positions in one kernel, forwards and backwards, where the formula takes one for each operation.

Shapes: B batch, H heads, T tokens, K head size.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from clearhead.fast.kernels.short_attention import token_major


@triton.jit(do_not_specialize=["T"])  # one kernel for all batches
def rotate_kernel(
    X, COS, SIN, OUT, xb, xh, xt, ob, oh, ot, rb, rt, sign, T,
    H: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip  # one program for each token: all of its heads
    b = tl.program_id(0).to(tl.int64) // T
    t = tl.program_id(0) % T
    head = tl.arange(0, HEADS)[:, None]
    pair = tl.arange(0, HALF)[None, :]
    inside = (head < H) & (pair < HALF)
    cos = tl.load(COS + b * rb + t * rt + pair).to(tl.float32)
    sin = tl.load(SIN + b * rb + t * rt + pair).to(tl.float32) * sign
    place = X + b * xb + head * xh + t * xt + pair
    first = tl.load(place, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(place + HALF, mask=inside, other=0.0).to(tl.float32)
    place = OUT + b * ob + head * oh + t * ot + pair
    tl.store(place, (first * cos - second * sin).to(OUT.dtype.element_ty), mask=inside)
    tl.store(place + HALF, (first * sin + second * cos).to(OUT.dtype.element_ty), mask=inside)


def turn(x: Tensor, rotation: Tensor, sign: float) -> Tensor:
    """Rotate x (B, H, T, K) by the angles of rotation (2, B|1, 1, T, K/2), or with a sign of -1 back."""
    B, H, T, K = x.shape
    x = x if x.stride(3) == 1 else x.contiguous()
    out = token_major(x)
    cos, sin = rotation[:, :, 0]  # (B|1, T, K/2) each
    row = cos.stride(0) if cos.size(0) > 1 else 0
    rotate_kernel[(B * T,)](
        x, cos, sin, out, *x.stride()[:3], *out.stride()[:3], row, cos.stride(1), sign, T,
        H, triton.next_power_of_2(H), K // 2, num_warps=1,
    )  # fmt: skip
    return out


class Rotate(torch.autograd.Function):
    """The rotation of queries or keys; its gradient is the gradient rotated back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rotation: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, H, T, K)."""
        ctx.save_for_backward(rotation)
        return turn(x, rotation, 1.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        """The gradient of x."""
        return turn(gradient, ctx.saved_tensors[0], -1.0), None


def fast_rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Equals `model.attention.rotate`, computed in float32."""
    result: Tensor = Rotate.apply(x, rotation)
    return result
