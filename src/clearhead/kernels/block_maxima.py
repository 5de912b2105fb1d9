"""The maximum of each block of a row of logits, and the row's logsumexp, in one reading.

Shapes: R rows, V vocabulary, N blocks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCKS_AT_ONCE = 64


@triton.jit
def block_maxima_kernel(LOGITS, MAXIMA, SUMS, stride, V, N, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = -float("inf")
    total = 0.0
    for begin in range(0, N, AT_ONCE):
        block = begin + tl.arange(0, AT_ONCE)
        column = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        x = tl.load(LOGITS + row * stride + column, mask=column < V, other=-float("inf"))
        maxima = tl.max(x, 1)
        tl.store(MAXIMA + row * N + block, maxima, mask=block < N)
        higher = tl.maximum(highest, tl.max(maxima, 0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.sum(tl.exp(x - higher), 1), 0)
        highest = higher
    tl.store(SUMS + row, highest + tl.log(total))


def block_maxima(logits: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """Logits (R, V) in float32 -> the maxima (R, N) of blocks of columns, and logsumexp (R, 1)."""
    rows, vocabulary = logits.shape
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    blocks = triton.cdiv(vocabulary, block)
    maxima = torch.empty(rows, blocks, device=logits.device)
    sums = torch.empty(rows, 1, device=logits.device)
    block_maxima_kernel[(rows,)](
        logits, maxima, sums, logits.stride(0), vocabulary, blocks, block, BLOCKS_AT_ONCE, num_warps=8
    )
    return maxima, sums
