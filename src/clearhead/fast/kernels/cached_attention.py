"""Self-attention of a decode step: rotate, append to the cache, attend to all tokens so far, in one kernel.

In a beam, hypotheses change places at each step. The cache does not: a table says in which row each token of each
hypothesis was written, and reordering permutes the table only.

The number of tokens so far is read from GPU memory, so that a CUDA graph of the step is right at every length.

Shapes: R rows, H heads, G key/value heads, C slots of the cache, K head size, P parts that the keys are divided into.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from clearhead.fast.kernels.token_attention import PROGRAMS, join_parts

MOST_PARTS = 32


class CacheTable(NamedTuple):
    """Where the tokens of each row are, the same for all layers."""

    written: Tensor  # () tokens so far, in every row, padding included
    real: Tensor  # (R, C) False at padding; True where nothing is written yet
    positions: Tensor  # (R, 1) real tokens so far: the position of the next one
    origin: Tensor | None  # (R, C) the row in which a token was written; None: its own row


@triton.jit
def rotated(X, channel, cos, sin, K: tl.constexpr):
    x = tl.load(X + channel).to(tl.float32)
    partner = tl.load(X + (channel + K // 2) % K).to(tl.float32)
    return x * cos + tl.where(channel < K // 2, -partner, partner) * sin


@triton.jit
def cached_attention_kernel(
    QKV, KEYS, VALUES, WRITTEN, REAL, POSITIONS, ORIGIN, COS, SIN, OUT, TOP, SUM, scale, C,
    H: tl.constexpr, G: tl.constexpr, K: tl.constexpr, ROTARY: tl.constexpr, BEAM: tl.constexpr,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) // H
    h = tl.program_id(0) % H
    part = tl.program_id(1)
    g = h // (H // G)
    channel = tl.arange(0, K)
    written = tl.load(WRITTEN).to(tl.int32)
    inputs = QKV + row * (H + 2 * G) * K
    if ROTARY:
        place = tl.load(POSITIONS + row) * (K // 2) + channel % (K // 2)
        cos = tl.load(COS + place)
        sin = tl.load(SIN + place)
        q = rotated(inputs + h * K, channel, cos, sin, K)
        k_new = rotated(inputs + (H + g) * K, channel, cos, sin, K)
    else:
        q = tl.load(inputs + h * K + channel).to(tl.float32)
        k_new = tl.load(inputs + (H + g) * K + channel).to(tl.float32)
    q *= scale
    k_new = k_new.to(KEYS.dtype.element_ty)
    v_new = tl.load(inputs + (H + G + g) * K + channel).to(VALUES.dtype.element_ty)
    top = -1e30
    total = 0.0
    mixed = tl.zeros([K], dtype=tl.float32)
    if part == 0:  # the new token itself
        top = tl.sum(q * k_new.to(tl.float32), 0)
        total = 1.0
        mixed = v_new.to(tl.float32)
        if h % (H // G) == 0:
            own = ((row * G + g) * C + written) * K + channel
            tl.store(KEYS + own, k_new)
            tl.store(VALUES + own, v_new)
        if BEAM:
            tl.store(ORIGIN + row * C + written, row.to(tl.int32))
    share = tl.cdiv(tl.cdiv(written, BLOCK), PARTS) * BLOCK
    for begin in range(part * share, tl.minimum(written, (part + 1) * share), BLOCK):
        slot = begin + tl.arange(0, BLOCK)
        seen = (slot < written) & (tl.load(REAL + row * C + slot, mask=slot < written, other=0) != 0)
        owner = row
        if BEAM:
            owner = tl.load(ORIGIN + row * C + slot, mask=slot < written, other=0).to(tl.int64)
        places = ((owner * G + g) * C + slot)[:, None] * K + channel[None, :]
        k = tl.load(KEYS + places, mask=seen[:, None], other=0.0).to(tl.float32)
        v = tl.load(VALUES + places, mask=seen[:, None], other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(k * q[None, :], 1), -1e30)
        higher = tl.maximum(top, tl.max(scores, 0))
        weights = tl.where(seen, tl.exp(scores - higher), 0.0)
        shrink = tl.exp(top - higher)
        mixed = mixed * shrink + tl.sum(v * weights[:, None], 0)
        total = total * shrink + tl.sum(weights, 0)
        top = higher
    place = tl.program_id(0).to(tl.int64) * PARTS + part
    if PARTS == 1:
        tl.store(OUT + place * K + channel, (mixed / total).to(OUT.dtype.element_ty))
    else:
        tl.store(OUT + place * K + channel, mixed)
        tl.store(TOP + place, top)
        tl.store(SUM + place, total)


def cached_attention(
    qkv: Tensor,  # (R, (H + 2 G) K): queries, keys and values of the new token, not rotated
    keys: Tensor,  # (R, G, C, K) of the tokens before; the new ones are written into it
    values: Tensor,  # (R, G, C, K)
    table: CacheTable,
    rotation: tuple[Tensor, Tensor] | None,  # cosines and sines (positions, K / 2)
) -> Tensor:
    """Append the new token's keys and values, and return softmax(Q Kᵀ / sqrt(K)) V of each row: (R, H K)."""
    R, G, C, K = keys.shape
    H = qkv.size(1) // K - 2 * G
    block = 32 if C <= 128 else 64 if C <= 1024 else 128  # keys that are read at once
    parts = parts_for(R * H, C // block)
    out = qkv.new_empty(R, H * K)
    partial = out if parts == 1 else torch.empty(R, H, parts, K, device=qkv.device)
    top, total = torch.empty(2, R, H, parts, device=qkv.device)
    cos, sin = rotation or (top, top)
    origin = table.written if table.origin is None else table.origin
    cached_attention_kernel[(R * H, parts)](
        qkv, keys, values, table.written, table.real, table.positions, origin, cos, sin, partial, top, total,
        1 / math.sqrt(K), C, H, G, K, rotation is not None, table.origin is not None, parts, block, num_warps=4,
    )  # fmt: skip
    if parts > 1:
        join_parts(partial, top, total, out.view(R, H, 1, K))
    return out


def parts_for(heads: int, blocks: int) -> int:
    """Into how many parts to divide the keys of each head: enough to keep the GPU busy, if there are many blocks."""
    if blocks < 5:
        return 1  # joining parts takes longer
    useful = triton.next_power_of_2(triton.cdiv(PROGRAMS, heads))
    return int(min(useful, triton.next_power_of_2(blocks), MOST_PARTS))
