"""Attention of one new token over a cache: what a decode step needs.

PyTorch's fused kernels are made for many queries; with one query and a mask they leave most of the GPU idle. Here the
keys are divided among programs, each of which computes a softmax over its share; a second kernel joins the shares.

Shapes: B rows, H heads, G key/value heads, S slots of the cache, K head size, P parts that the keys are divided into.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 256  # how many at once keep a large GPU busy, at least
KEYS_AT_ONCE = 64  # keys that are read at once


@triton.jit
def partial_kernel(
    Q, KEY, V, MASK, OUT, TOP, SUM, qb, qh, kb, kh, ks, vb, vh, vs, mb, ms, scale, S, share, shared,
    H: tl.constexpr, G: tl.constexpr, K: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64) // H
    h = tl.program_id(0) % H
    part = tl.program_id(1)
    g = h // (H // G)
    channel = tl.arange(0, K)
    q = tl.load(Q + b * qb + h * qh + channel).to(tl.float32) * scale
    b = b // shared
    top = -1e30
    total = 0.0
    mixed = tl.zeros([K], dtype=tl.float32)
    for begin in range(part * share, tl.minimum(S, part * share + share), BLOCK):
        slot = begin + tl.arange(0, BLOCK)
        seen = tl.load(MASK + b * mb + slot * ms, mask=slot < S, other=0) != 0
        places = slot[:, None] * ks + channel[None, :]
        k = tl.load(KEY + b * kb + g * kh + places, mask=seen[:, None], other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(k * q[None, :], 1), -1e30)
        higher = tl.maximum(top, tl.max(scores, 0))
        weights = tl.where(seen, tl.exp(scores - higher), 0.0)
        shrink = tl.exp(top - higher)
        places = slot[:, None] * vs + channel[None, :]
        v = tl.load(V + b * vb + g * vh + places, mask=seen[:, None], other=0.0).to(tl.float32)
        mixed = mixed * shrink + tl.sum(v * weights[:, None], 0)
        total = total * shrink + tl.sum(weights, 0)
        top = higher
    place = tl.program_id(0).to(tl.int64) * PARTS + part
    if PARTS == 1:
        tl.store(OUT + place * K + channel, (mixed / tl.where(total == 0.0, 1.0, total)).to(OUT.dtype.element_ty))
    else:
        tl.store(OUT + place * K + channel, mixed)
        tl.store(TOP + place, top)
        tl.store(SUM + place, total)


@triton.jit
def join_kernel(PARTIAL, TOP, SUM, OUT, PARTS: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)
    channel = tl.arange(0, K)
    top = tl.load(TOP + row * PARTS + part)
    factor = tl.exp(top - tl.max(top, 0))
    total = tl.sum(tl.load(SUM + row * PARTS + part) * factor, 0)
    mixed = tl.load(PARTIAL + (row * PARTS + part[:, None]) * K + channel[None, :])
    out = tl.sum(mixed * factor[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(OUT + row * K + channel, out.to(OUT.dtype.element_ty))


def token_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """softmax(Q Kᵀ / sqrt(K)) V for one query a row: (B, H, 1, K), (B', G, S, K), mask (B', 1, 1, S) -> (B, H, 1, K).

    With B' < B, B / B' neighbouring rows share their keys: the hypotheses of a sentence, in cross-attention.
    """
    B, H, _, K = queries.shape
    G, S = keys.shape[1:3]
    mask = mask.expand(keys.size(0), 1, 1, S)
    blocks = triton.cdiv(S, KEYS_AT_ONCE)
    parts = min(triton.next_power_of_2(triton.cdiv(PROGRAMS, B * H)), triton.next_power_of_2(blocks))
    share = triton.cdiv(blocks, parts) * KEYS_AT_ONCE
    out = queries.new_empty(B, H, 1, K)
    partial = out if parts == 1 else torch.empty(B, H, parts, K, device=queries.device)
    top, total = torch.empty(2, B, H, parts, device=queries.device)
    partial_kernel[(B * H, parts)](
        queries, keys, values, mask, partial, top, total, *queries.stride()[:2], *keys.stride()[:3],
        *values.stride()[:3], mask.stride(0), mask.stride(3), 1 / math.sqrt(K), S, share, B // keys.size(0), H, G, K,
        parts, KEYS_AT_ONCE, num_warps=4,
    )  # fmt: skip
    if parts > 1:
        join_parts(partial, top, total, out)
    return out


def join_parts(partial: Tensor, top: Tensor, total: Tensor, out: Tensor) -> None:
    """Join the softmax over parts of the keys: (B, H, P, K) sums of values, (B, H, P) maxima and sums of weights."""
    B, H, parts, K = partial.shape
    join_kernel[(B * H,)](partial, top, total, out, parts, K, num_warps=1)
