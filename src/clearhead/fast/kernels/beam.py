"""A step of beam search in three kernels, where the formulas of decode/beam.py take a hundred.

Shapes: B sentences, W hypotheses of each, R rows (B W), C candidates of each row, T tokens, V vocabulary, N blocks,
P parts of a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from clearhead.decode.beam import Beams

LARGEST_TILE = 8192  # tokens of all hypotheses of a sentence, which one program holds
BLOCK_COLUMNS = 64  # columns of a block, whose maximum is computed first
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


def block_maxima(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (R, V) in float32 -> the maxima (R, N) of blocks of columns; maxima and sums (R, P) of larger parts.

    The sums are those of exp(logit - maximum).
    """
    rows, vocabulary = logits.shape
    blocks = triton.cdiv(vocabulary, BLOCK_COLUMNS)
    parts = triton.cdiv(blocks, BLOCKS_AT_ONCE)
    maxima = torch.empty(rows, blocks, device=logits.device)
    tops, sums = torch.empty(2, rows, parts, device=logits.device)
    block_maxima_kernel[(rows, parts)](
        logits, maxima, tops, sums, logits.stride(0), vocabulary, blocks, parts, BLOCK_COLUMNS, BLOCKS_AT_ONCE,
        num_warps=8,
    )  # fmt: skip
    return maxima, tops, sums


@triton.jit
def candidates_kernel(
    LOGITS, MAXIMA, TOPS, SUMS, VALUES, TOKENS, stride, V, N, P,
    C: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr, SLOTS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip  # one program for each row
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, BLOCKS)
    maxima = tl.load(MAXIMA + row * N + block, mask=block < N, other=-float("inf"))
    slot = tl.arange(0, SLOTS)
    chosen = tl.zeros([SLOTS], dtype=tl.int32)
    for i in tl.static_range(C):  # the C largest logits lie in the C blocks with the largest maxima
        best = tl.argmax(maxima, 0)
        chosen = tl.where(slot == i, best, chosen)
        maxima = tl.where(block == best, -float("inf"), maxima)
    column = chosen[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (slot < C)[:, None] & (column < V)
    x = tl.load(LOGITS + row * stride + column, mask=inside, other=-float("inf"))
    x = tl.reshape(x, [SLOTS * BLOCK])
    column = tl.reshape(column, [SLOTS * BLOCK])
    part = tl.arange(0, PARTS)
    tops = tl.load(TOPS + row * P + part, mask=part < P, other=-float("inf"))
    top = tl.max(tops, 0)
    sums = tl.load(SUMS + row * P + part, mask=part < P, other=0.0)
    logsumexp = top + tl.log(tl.sum(sums * tl.exp(tops - top), 0))
    place = tl.arange(0, SLOTS * BLOCK)
    for i in tl.static_range(C):
        best = tl.argmax(x, 0)
        tl.store(VALUES + row * C + i, tl.max(x, 0) - logsumexp)
        tl.store(TOKENS + row * C + i, tl.sum(tl.where(place == best, column, 0), 0).to(tl.int64))
        x = tl.where(place == best, -float("inf"), x)


def best_candidates(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`logits.log_softmax(-1).topk(count)` of (R, V) in float32."""
    rows, vocabulary = logits.shape
    if vocabulary < BLOCK_COLUMNS * count:
        values, tokens = logits.log_softmax(-1).topk(count)
        return values, tokens
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    maxima, tops, sums = block_maxima(logits)
    values = torch.empty(rows, count, device=logits.device)
    tokens = torch.empty(rows, count, dtype=torch.long, device=logits.device)
    blocks, parts = maxima.size(1), tops.size(1)
    candidates_kernel[(rows,)](
        logits, maxima, tops, sums, values, tokens, logits.stride(0), vocabulary, blocks, parts,
        count, BLOCK_COLUMNS, triton.next_power_of_2(blocks), triton.next_power_of_2(count),
        triton.next_power_of_2(parts), num_warps=4,
    )  # fmt: skip
    return values, tokens


@triton.jit
def penalty(length, alpha):
    return tl.exp(alpha * tl.log((5.0 + length) / 6.0))


@triton.jit
def pick(x, numbers, number):
    return tl.sum(tl.where(numbers == number, x, 0), 0)


@triton.jit
def advance_kernel(
    VALUES, TOKENS, ENDS, LOG_PROBABILITIES, PARENTS, IDS, SCORES, COMPLETE, LENGTHS, DONE, LENGTH, LIMITS, alpha, T,
    W: tl.constexpr, C: tl.constexpr, NBEST: tl.constexpr, ALL: tl.constexpr, PLACES: tl.constexpr,
    POOL: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip  # one program for each sentence
    b = tl.program_id(0).to(tl.int64)
    length = tl.load(LENGTH).to(tl.int32)
    limit = tl.load(LIMITS + b).to(tl.int32)
    last = limit == length + 1
    number = tl.arange(0, ALL)  # of all continuations of the sentence
    known = number < W * C
    totals = tl.load(VALUES + b * W * C + number, mask=known, other=-float("inf"))
    totals += tl.load(LOG_PROBABILITIES + b * W + number // C, mask=known, other=-float("inf"))
    tokens = tl.load(TOKENS + b * W * C + number, mask=known, other=0)
    ends = tl.load(ENDS + b * W * C + number, mask=known, other=1).to(tl.int32)
    # the complete hypotheses so far, then the most likely continuations that end here
    pool = tl.arange(0, POOL)
    scores = tl.load(SCORES + b * W + pool, mask=pool < W, other=-float("inf"))
    lengths = tl.load(LENGTHS + b * W + pool, mask=pool < W, other=0).to(tl.int32)
    lengths = tl.where(pool < W, lengths, length + 1)
    sources = pool  # the row that each of them is in: of COMPLETE, or W + that of IDS
    newest = tl.zeros([POOL], dtype=tl.int64)
    left = totals
    for i in tl.static_range(W):
        best = tl.argmax(left, 0)
        ended = (pick(ends, number, best) != 0) | last
        score = tl.where(ended, tl.max(left, 0) / penalty((length + 1).to(tl.float32), alpha), -float("inf"))
        scores = tl.where(pool == W + i, score, scores)
        sources = tl.where(pool == W + i, W + best // C, sources)
        newest = tl.where(pool == W + i, pick(tokens, number, best), newest)
        left = tl.where(number == best, -float("inf"), left)
    place = tl.arange(0, PLACES)
    kept_scores = tl.full([PLACES], float("inf"), dtype=tl.float32)
    kept_lengths = tl.zeros([PLACES], dtype=tl.int32)
    kept_rows = tl.zeros([PLACES], dtype=tl.int32)
    kept_newest = tl.zeros([PLACES], dtype=tl.int64)
    needed = 0.0  # the score of the last result that is wanted
    lowest = 0.0
    for i in tl.static_range(W):
        best = tl.argmax(scores, 0)
        lowest = tl.max(scores, 0)
        if i == NBEST - 1:
            needed = lowest
        kept_scores = tl.where(place == i, lowest, kept_scores)
        kept_lengths = tl.where(place == i, pick(lengths, pool, best), kept_lengths)
        kept_rows = tl.where(place == i, pick(sources, pool, best), kept_rows)
        kept_newest = tl.where(place == i, pick(newest, pool, best), kept_newest)
        scores = tl.where(pool == best, -float("inf"), scores)
    # the most likely continuations that do not end
    left = tl.where((ends != 0) | last, -float("inf"), totals)
    open_totals = tl.full([PLACES], -float("inf"), dtype=tl.float32)
    open_rows = tl.zeros([PLACES], dtype=tl.int32)
    open_newest = tl.zeros([PLACES], dtype=tl.int64)
    likeliest = tl.max(left, 0)
    for i in tl.static_range(W):
        best = tl.argmax(left, 0)
        open_totals = tl.where(place == i, tl.max(left, 0), open_totals)
        open_rows = tl.where(place == i, best // C, open_rows)
        open_newest = tl.where(place == i, pick(tokens, number, best), open_newest)
        left = tl.where(number == best, -float("inf"), left)
    # read all rows before any is overwritten
    token = tl.arange(0, TILE)
    column = tl.minimum(length, T - 1)
    inside = (place < W)[:, None] & (token < T)[None, :]
    old = (kept_rows < W)[:, None]
    rows = COMPLETE + (b * W + kept_rows)[:, None] * T + token[None, :]
    finished = tl.load(rows, mask=inside & old, other=0)
    rows = IDS + (b * W + kept_rows - W)[:, None] * T + token[None, :]
    added = tl.load(rows, mask=inside & (kept_rows >= W)[:, None], other=0)
    added = tl.where((token == column)[None, :], kept_newest[:, None], added)
    finished = tl.where(old, finished, added)
    rows = IDS + (b * W + open_rows)[:, None] * T + token[None, :]
    going_on = tl.load(rows, mask=inside, other=0)
    going_on = tl.where((token == column)[None, :], open_newest[:, None], going_on)
    tl.debug_barrier()
    own = b * W + place
    tl.store(COMPLETE + own[:, None] * T + token[None, :], finished, mask=inside)
    tl.store(IDS + own[:, None] * T + token[None, :], going_on, mask=inside)
    tl.store(SCORES + own, kept_scores, mask=place < W)
    tl.store(LENGTHS + own, kept_lengths.to(tl.int64), mask=place < W)
    tl.store(PARENTS + own, open_rows.to(tl.int64), mask=place < W)
    kept_totals = kept_scores * penalty(kept_lengths.to(tl.float32), alpha)
    full = (tl.min(kept_totals, 0) >= likeliest) & (lowest > -float("inf"))
    done = full | (likeliest / penalty(limit.to(tl.float32), alpha) <= needed)
    tl.store(DONE + b, done)
    tl.store(LOG_PROBABILITIES + own, tl.where(done, -float("inf"), open_totals), mask=place < W)


def can_advance(beams: Beams) -> bool:
    """Whether a program can hold the tokens (B, W, T) of a sentence's hypotheses."""
    _, width, longest = beams.ids.shape
    return int(triton.next_power_of_2(width) * triton.next_power_of_2(longest)) <= LARGEST_TILE


def advance(beams: Beams, values: Tensor, tokens: Tensor) -> None:
    """Continue hypotheses by their candidates (R, C); `Beams.read` is the formula, and counts the token afterwards."""
    count, width, longest = beams.ids.shape
    candidates = values.size(1)
    changed = (
        beams.log_probabilities, beams.parents, beams.ids, beams.scores, beams.complete, beams.lengths, beams.done,
    )  # fmt: skip
    advance_kernel[(count,)](
        values, tokens, beams.ending.reached(tokens), *changed, beams.length, beams.limits,
        beams.alpha, longest, width, candidates, beams.nbest,
        triton.next_power_of_2(width * candidates), triton.next_power_of_2(width), triton.next_power_of_2(2 * width),
        triton.next_power_of_2(longest), num_warps=4,
    )  # fmt: skip
