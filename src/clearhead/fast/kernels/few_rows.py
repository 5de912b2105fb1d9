"""A linear layer of a few rows, as in a decode step: what takes time is reading the weights, once.

Weights are in bfloat16 or float32, or in int8 with a scale for each output. The same kernel can normalise its input and
add its output to the residual stream: a kernel of its own for either would take as long as reading a small matrix.

Shapes: R rows, D inputs, F outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from clearhead.model.norm import LayerNorm, RMSNorm

MOST_ROWS = 4  # more rows are left to cuBLAS
SEVERAL = 8192  # from this many outputs on, a program computes more of them


class Normed(NamedTuple):
    """norm(x), which is computed where it is needed."""

    x: Tensor  # (R, D), float32
    norm: LayerNorm | RMSNorm


@triton.jit
def few_rows_kernel(
    X, W, SCALE, BIAS, OUT, GAIN, SHIFT, epsilon, D, F,
    R: tl.constexpr, ROWS: tl.constexpr, HAS_BIAS: tl.constexpr, ACTIVATION: tl.constexpr, ADD: tl.constexpr,
    NORM: tl.constexpr, HAS_SHIFT: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr, ALL: tl.constexpr,
    QUANTISED: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    if NORM != "none":
        every = tl.arange(0, ALL)
        known = (row < R)[:, None] & (every < D)[None, :]
        centred = tl.load(X + row[:, None] * D + every[None, :], mask=known, other=0.0)
        mean = tl.zeros([ROWS], dtype=tl.float32)
        if NORM == "layer":
            mean = tl.sum(centred, 1) / D
            centred = tl.where(known, centred - mean[:, None], 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, 1) / D + epsilon)
    products = tl.zeros([ROWS, OUTPUTS, INPUTS], dtype=tl.float32)
    for begin in range(0, D, INPUTS):
        channel = begin + tl.arange(0, INPUTS)
        inside = channel < D
        places = W + output[:, None].to(tl.int64) * D + channel[None, :]
        w = tl.load(places, mask=(output < F)[:, None] & inside[None, :], other=0.0)
        x = tl.load(X + row[:, None] * D + channel[None, :], mask=(row < R)[:, None] & inside[None, :], other=0.0)
        if NORM == "none":
            factor = x.to(tl.float32)
        else:
            normed = (x - mean[:, None]) * scale[:, None] * tl.load(GAIN + channel, mask=inside, other=0.0)[None, :]
            if HAS_SHIFT:
                normed += tl.load(SHIFT + channel, mask=inside, other=0.0)[None, :]
            factor = normed
            if not QUANTISED:
                factor = normed.to(W.dtype.element_ty).to(tl.float32)
        products += factor[:, None, :] * w[None, :, :].to(tl.float32)
    y = tl.sum(products, 2)
    if QUANTISED:
        y *= tl.load(SCALE + output, mask=output < F, other=0.0)[None, :]
    if HAS_BIAS:
        y += tl.load(BIAS + output, mask=output < F, other=0.0).to(tl.float32)[None, :]
    if ACTIVATION == "relu":
        y = tl.maximum(y, 0.0)
    elif ACTIVATION == "gelu":
        y = 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476))
    elif ACTIVATION == "gelu-tanh":
        z = 0.7978845608028654 * (y + 0.044715 * y * y * y)
        y = y / (1.0 + tl.exp(-2.0 * z))  # 0.5 y (1 + tanh z)
    mask = (row < R)[:, None] & (output < F)[None, :]
    places = OUT + row[:, None] * F + output[None, :]
    if ADD:
        y += tl.load(places, mask=mask, other=0.0)
    tl.store(places, y.to(OUT.dtype.element_ty), mask=mask)


def few_rows_linear(
    x: Tensor | Normed,
    weight: Tensor,
    bias: Tensor | None,
    out: Tensor | torch.dtype,
    activation: str = "none",
    scale: Tensor | None = None,
) -> Tensor:
    """activation(x Wᵀ + b) for at most MOST_ROWS rows, (R, D) -> (R, F), in a dtype or added to a tensor in float32.

    A weight in int8 is multiplied by the scale of each output, (F,).
    """
    x, norm = x if isinstance(x, Normed) else (x, None)
    rows, inputs = x.shape
    outputs = weight.size(0)
    padded = triton.next_power_of_2(rows)
    several, inputs_at_once, warps = (8, 256, 2) if outputs >= SEVERAL else (4, 1024, 2) if rows == 1 else (2, 1024, 4)
    result = out if isinstance(out, Tensor) else torch.empty(rows, outputs, dtype=out, device=x.device)
    shift = getattr(norm, "bias", None)
    few_rows_kernel[(triton.cdiv(outputs, several),)](
        x, weight, weight if scale is None else scale, weight if bias is None else bias, result,
        weight if norm is None else norm.weight, weight if shift is None else shift,
        0.0 if norm is None else norm.epsilon, inputs, outputs,
        rows, padded, bias is not None, activation, isinstance(out, Tensor),
        "none" if norm is None else "rms" if isinstance(norm, RMSNorm) else "layer", shift is not None,
        several, min(inputs_at_once, triton.next_power_of_2(inputs)), triton.next_power_of_2(inputs),
        scale is not None, num_warps=warps,
    )  # fmt: skip
    return result
