"""The maxima of blocks of a row of logits, and what its logsumexp is made of, in one reading.

Shapes: R rows, V vocabulary, N blocks, P parts.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCKS_AT_ONCE = 64


@triton.jit
def block_maxima_kernel(LOGITS, MAXIMA, TOPS, SUMS, stride, V, N, P, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    block = part * AT_ONCE + tl.arange(0, AT_ONCE)
    column = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(LOGITS + row * stride + column, mask=column < V, other=-float("inf"))
    maxima = tl.max(x, 1)
    top = tl.max(maxima, 0)
    tl.store(MAXIMA + row * N + block, maxima, mask=block < N)
    tl.store(TOPS + row * P + part, top)
    tl.store(SUMS + row * P + part, tl.sum(tl.sum(tl.exp(x - top), 1), 0))


def block_maxima(logits: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (R, V) in float32 -> the maxima (R, N) of blocks of columns; maxima and sums (R, P) of larger parts.

    The sums are those of exp(logit - maximum).
    """
    rows, vocabulary = logits.shape
    blocks = triton.cdiv(vocabulary, block)
    parts = triton.cdiv(blocks, BLOCKS_AT_ONCE)
    maxima = torch.empty(rows, blocks, device=logits.device)
    tops, sums = torch.empty(2, rows, parts, device=logits.device)
    block_maxima_kernel[(rows, parts)](
        logits, maxima, tops, sums, logits.stride(0), vocabulary, blocks, parts, block, BLOCKS_AT_ONCE, num_warps=8
    )
    return maxima, tops, sums
