"""Residual addition and norm of a decode step, in one kernel.

Shapes: R rows, D model.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from clearhead.model.norm import LayerNorm, RMSNorm


@triton.jit
def add_norm_kernel(
    X, DELTA, GAIN, BIAS, OUT, epsilon, D,
    HAS_DELTA: tl.constexpr, HAS_BIAS: tl.constexpr, RMS: tl.constexpr, POST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip  # one program for each row
    channel = tl.arange(0, BLOCK)
    inside = channel < D
    place = tl.program_id(0).to(tl.int64) * D + channel
    x = tl.load(X + place, mask=inside, other=0.0)
    if HAS_DELTA:
        x += tl.load(DELTA + place, mask=inside, other=0.0).to(tl.float32)
    if not POST:
        tl.store(X + place, x, mask=inside)
    centred = x
    if not RMS:
        centred = tl.where(inside, x - tl.sum(x, 0) / D, 0.0)
    y = centred * tl.rsqrt(tl.sum(centred * centred, 0) / D + epsilon)
    y = y * tl.load(GAIN + channel, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(BIAS + channel, mask=inside, other=0.0).to(tl.float32)
    if POST:
        tl.store(X + place, y, mask=inside)
    tl.store(OUT + place, y.to(OUT.dtype.element_ty), mask=inside)


def add_norm(x: Tensor, delta: Tensor | None, norm: LayerNorm | RMSNorm, post: bool, dtype: torch.dtype) -> Tensor:
    """Add delta (R, D) to the residual stream x (R, D) in place; return norm(x) in `dtype`.

    With post-norm the stream itself becomes norm(x). The stream is float32.
    """
    out = torch.empty_like(x, dtype=dtype)
    bias = getattr(norm, "bias", None)
    add_norm_kernel[(x.size(0),)](
        x, x if delta is None else delta, norm.weight, norm.weight if bias is None else bias, out, norm.epsilon,
        x.size(1), delta is not None, bias is not None, isinstance(norm, RMSNorm), post,
        triton.next_power_of_2(x.size(1)), num_warps=4,
    )  # fmt: skip
    return out
