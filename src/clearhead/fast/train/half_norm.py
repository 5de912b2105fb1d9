"""The norms of a small model that trains in bfloat16: one kernel forward, and one backward for all three gradients.

Autocast normalises in float32 and leaves the cast to the linear layer that follows. PyTorch sums the gradients of gain
and bias in a separate kernel, which for a few thousand tokens takes longer than everything else of a norm; here only
the sums of some hundred parts are left for a second kernel.

Shapes: N tokens, D channels, P parts of the tokens.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from clearhead.model.block import AddNorm
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import Stack

NUMBERS = 2048  # that a program reads at once
PARTS = 264  # of the tokens, for the gradients of gain and bias: two for each of the 132 multiprocessors of an H200


@triton.jit(do_not_specialize=["N"])  # one kernel for all batches
def norm_forward_kernel(
    X, GAIN, BIAS, OUT, MEANS, SCALES, epsilon, N, D,
    RMS: tl.constexpr, HAS_BIAS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, BLOCK)
    known = channel < D
    inside = (row < N)[:, None] & known[None, :]
    place = row[:, None].to(tl.int64) * D + channel[None, :]
    x = tl.load(X + place, mask=inside, other=0.0).to(tl.float32)
    mean = tl.zeros([ROWS], dtype=tl.float32)
    if not RMS:
        mean = tl.sum(x, 1) / D
    centred = tl.where(inside, x - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1) / D + epsilon)
    y = centred * scale[:, None] * tl.load(GAIN + channel, mask=known, other=0.0)[None, :]
    if HAS_BIAS:
        y += tl.load(BIAS + channel, mask=known, other=0.0)[None, :]
    tl.store(OUT + place, y.to(OUT.dtype.element_ty), mask=inside)
    tl.store(MEANS + row, mean, mask=row < N)
    tl.store(SCALES + row, scale, mask=row < N)


@triton.jit(do_not_specialize=["N", "share"])
def norm_backward_kernel(
    X, GAIN, MEANS, SCALES, GRADIENT, OF_X, PARTIAL, N, D, share,
    RMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)
    channel = tl.arange(0, BLOCK)
    known = channel < D
    gain = tl.load(GAIN + channel, mask=known, other=0.0)
    of_gain = tl.zeros([ROWS, BLOCK], dtype=tl.float32)  # of every ROWS-th token: joined after the loop
    of_bias = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    end = tl.minimum(N, (part + 1) * share)
    for start in range(part * share, end, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < end)[:, None] & known[None, :]
        place = row[:, None].to(tl.int64) * D + channel[None, :]
        mean = tl.load(MEANS + row, mask=row < end, other=0.0)
        scale = tl.load(SCALES + row, mask=row < end, other=0.0)
        x = tl.load(X + place, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(GRADIENT + place, mask=inside, other=0.0).to(tl.float32)
        normalized = (x - mean[:, None]) * scale[:, None]
        of_gain += gradient * normalized
        of_bias += gradient
        of_normalized = gradient * gain[None, :]
        of_x = of_normalized - normalized * (tl.sum(of_normalized * normalized, 1) / D)[:, None]
        if not RMS:
            of_x -= (tl.sum(of_normalized, 1) / D)[:, None]
        tl.store(OF_X + place, (of_x * scale[:, None]).to(OF_X.dtype.element_ty), mask=inside)
    parts = tl.num_programs(0)
    tl.store(PARTIAL + part * D + channel, tl.sum(of_gain, 0), mask=known)
    tl.store(PARTIAL + (parts + part) * D + channel, tl.sum(of_bias, 0), mask=known)


class NormFunction(torch.autograd.Function):
    """LayerNorm or RMSNorm of float32 or bfloat16 numbers, in bfloat16, with float32 gradients of gain and bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, bias: Tensor | None, epsilon: float, rms: bool) -> Tensor:
        """(..., D) -> (..., D)."""
        x = x.contiguous()
        channels = x.size(-1)
        tokens = x.numel() // channels
        out = torch.empty_like(x, dtype=torch.bfloat16)
        means, scales = torch.empty(2, tokens, device=x.device)
        block = triton.next_power_of_2(channels)
        rows = max(1, NUMBERS // block)
        norm_forward_kernel[(triton.cdiv(tokens, rows),)](
            x, gain, gain if bias is None else bias, out, means, scales, epsilon, tokens, channels,
            rms, bias is not None, rows, block, num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(x, gain, means, scales)
        ctx.options = {"RMS": rms, "ROWS": rows, "BLOCK": block}
        ctx.has_bias = bias is not None
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The gradients of x, gain and bias."""
        x, gain, means, scales = ctx.saved_tensors
        tokens = means.size(0)
        parts = min(PARTS, triton.cdiv(tokens, ctx.options["ROWS"]))
        of_x = torch.empty_like(x)
        partial = torch.empty(2, parts, gain.size(0), device=x.device)
        norm_backward_kernel[(parts,)](
            x, gain, means, scales, gradient.contiguous(), of_x, partial, tokens, gain.size(0),
            triton.cdiv(tokens, parts), **ctx.options, num_warps=4,
        )  # fmt: skip
        of_gain, of_bias = partial.sum(1)
        return of_x, of_gain, of_bias if ctx.has_bias else None, None, None


class HalfNorm(nn.Module):
    """A norm whose output is bfloat16 while it trains; otherwise it computes as any other."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        assert isinstance(self, LayerNorm | RMSNorm)
        if not (self.training and torch.is_grad_enabled()) or self.normalized.observed:
            plain: Tensor = super().forward(x)
            return plain
        bias = getattr(self, "bias", None)
        result: Tensor = NormFunction.apply(x, self.weight, bias, self.epsilon, isinstance(self, RMSNorm))
        return result


class HalfLayerNorm(HalfNorm, LayerNorm):
    """LayerNorm with these kernels."""


class HalfRMSNorm(HalfNorm, RMSNorm):
    """RMSNorm with these kernels."""


HALF_NORMS = {LayerNorm: HalfLayerNorm, RMSNorm: HalfRMSNorm}


def use_half_norms(model: nn.Module, last: bool = True) -> None:
    """Let pre-norm models train with these kernels: linear layers follow their norms, and would cast to bfloat16.

    `last`: also the norm at the end of a stack. With post-norm, the output of a norm is the residual stream itself,
    which stays in float32.
    """
    for module in model.modules():
        if (isinstance(module, AddNorm) and module.norm_first) or (isinstance(module, Stack) and last):
            norm = module.norm
            if type(norm) in HALF_NORMS:
                norm.__class__ = HALF_NORMS[type(norm)]
