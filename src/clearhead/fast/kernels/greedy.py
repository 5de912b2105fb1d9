"""A step of greedy search in two kernels: the most likely token of each row, its log-probability, and whether to go on.

Shapes: N rows of a batch, B of them that are still being written, V vocabulary, P parts of the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from clearhead.decode.search import TokenSearch

PART_COLUMNS = 4096  # of a part


@triton.jit
def part_maxima_kernel(LOGITS, TOPS, BEST, SUMS, stride, V, P, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    column = part * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(LOGITS + row * stride + column, mask=column < V, other=-float("inf"))
    top = tl.max(x, 0)
    tl.store(TOPS + row * P + part, top)
    tl.store(BEST + row * P + part, part * COLUMNS + tl.argmax(x, 0))
    tl.store(SUMS + row * P + part, tl.sum(tl.exp(x - top), 0))


@triton.jit
def write_kernel(
    TOPS, BEST, SUMS, WRITTEN, SCORES, ROWS, LIMITS, NEXT_IDS, ACTIVE, STEP, P, end, pad,
    HAS_END: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip  # one program for each row
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    tops = tl.load(TOPS + row * P + part, mask=part < P, other=-float("inf"))
    top = tl.max(tops, 0)
    best = tl.load(BEST + row * P + tl.argmax(tops, 0)).to(tl.int64)
    sums = tl.load(SUMS + row * P + part, mask=part < P, other=0.0)
    score = -tl.log(tl.sum(sums * tl.exp(tops - top), 0))
    active = tl.load(ACTIVE + row) != 0
    chosen = tl.where(active, best, pad)
    batch_row = tl.load(ROWS + row)
    tl.store(NEXT_IDS + row, chosen)
    tl.store(WRITTEN + batch_row, chosen)
    tl.store(SCORES + batch_row, tl.where(active, score, 0.0))
    active = active & (tl.load(STEP) + 1 < tl.load(LIMITS + row))
    if HAS_END:
        active = active & (chosen != end)
    tl.store(ACTIVE + row, active)


def write_most_likely(search: TokenSearch, logits: Tensor) -> None:
    """Write the most likely tokens by their logits (B, V) in float32, with one end token at most.

    `TokenSearch.read` is the formula, and counts the token afterwards.
    """
    end = next(iter(search.ending.end), -1)
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    rows, vocabulary = logits.shape
    parts = triton.cdiv(vocabulary, PART_COLUMNS)
    tops, sums = torch.empty(2, rows, parts, device=logits.device)
    best = torch.empty(rows, parts, dtype=torch.int32, device=logits.device)
    part_maxima_kernel[(rows, parts)](
        logits, tops, best, sums, logits.stride(0), vocabulary, parts, PART_COLUMNS, num_warps=8
    )
    write_kernel[(rows,)](
        tops, best, sums, search.written, search.scores, search.rows, search.limits, search.next_ids, search.active,
        search.step, parts, end, search.ending.pad, end >= 0,
        triton.next_power_of_2(parts), num_warps=1,
    )  # fmt: skip
