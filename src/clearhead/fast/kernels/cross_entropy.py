"""The cross-entropy of a linear layer, without ever holding all logits.

The logits of 65,536 tokens over 50,257 words take 6.6 GB in bfloat16 and twice that in float32. Here they are computed
a chunk at a time. The gradient of the loss with respect to a chunk's logits is known as soon as the logits are, so it
overwrites them, and the gradients of the hidden states and of the weight follow at once, in the forward pass.

Shapes: N targets, D model, V vocabulary, C rows of a chunk, P passes (two with R-Drop).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from clearhead.model.families import Head
from clearhead.train.loss import cross_entropy_of
from clearhead.train.parallel import is_sharded

IGNORE = tl.constexpr(-100)  # a target that is not learned
CHUNK_BYTES = 2**30  # of the logits that are held at once
LOGITS_AT_ONCE = 8192  # logits that a program reads at once: with fewer, more rows would compete for the cache
ALIGNED_COLUMNS = 128  # matrix products are fastest with a multiple of this many columns


@triton.jit
def load_logits(logits, column, vocab, padded):
    x = tl.load(logits + column, mask=column < padded, other=0.0).to(tl.float32)  # 16 bytes at once: padded is aligned
    return tl.where(column < vocab, x, -float("inf"))


@triton.jit
def sums_of(logits, vocab, padded, SUMMED: tl.constexpr, BLOCK: tl.constexpr):
    """The logsumexp of a row of logits and, if SUMMED, their sum."""
    highest = tl.full([BLOCK], -1e30, dtype=tl.float32)  # of every BLOCK-th column: joined after the loop
    sums = tl.zeros([BLOCK], dtype=tl.float32)  # of exp(logit - highest)
    plain = tl.zeros([BLOCK], dtype=tl.float32)  # of logits
    for start in range(0, vocab, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = load_logits(logits, column, vocab, padded)
        ratio = tl.exp(-tl.abs(x - highest))  # of the smaller to the larger of the two
        sums = tl.where(x > highest, sums * ratio + 1.0, sums + ratio)
        highest = tl.maximum(highest, x)
        if SUMMED:
            plain += tl.where(column < vocab, x, 0.0)
    top = tl.max(highest, 0)
    return top + tl.log(tl.sum(sums * tl.exp(highest - top), 0)), tl.sum(plain, 0)


@triton.jit
def replace_by_gradient(
    LOGITS, TARGETS, LOSSES, stride, vocab, padded, smoothing, SMOOTHED: tl.constexpr, BLOCK: tl.constexpr
):  # one program for each row of (C, padded) logits
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(TARGETS + row)
    logits = LOGITS + row * stride
    logsumexp, total = sums_of(logits, vocab, padded, SMOOTHED, BLOCK)
    learned = target != IGNORE
    chosen = tl.load(logits + tl.where(learned, target, 0)).to(tl.float32)
    loss = logsumexp - (1 - smoothing) * chosen - smoothing * total / vocab
    tl.store(LOSSES + row, tl.where(learned, loss, 0.0))
    for start in range(0, padded, BLOCK):  # softmax minus the target distribution
        column = start + tl.arange(0, BLOCK)
        x = load_logits(logits, column, vocab, padded)
        wanted = tl.where(column == target, 1 - smoothing, 0.0) + smoothing / vocab
        gradient = tl.where(learned & (column < vocab), tl.exp(x - logsumexp) - wanted, 0.0)
        tl.store(logits + column, gradient.to(LOGITS.dtype.element_ty), mask=column < padded)


@triton.jit
def replace_pairs_by_gradient(
    LOGITS, TARGETS, LOSSES, stride, vocab, padded, smoothing, weight, SMOOTHED: tl.constexpr, BLOCK: tl.constexpr
):  # one program for two rows of (2C, padded) logits, the two passes of one target
    pair = tl.program_id(0).to(tl.int64)
    target = tl.load(TARGETS + pair)
    first = LOGITS + 2 * pair * stride
    second = first + stride
    lse_1, total_1 = sums_of(first, vocab, padded, SMOOTHED, BLOCK)
    lse_2, total_2 = sums_of(second, vocab, padded, SMOOTHED, BLOCK)
    forward = tl.zeros([BLOCK], dtype=tl.float32)  # p (log p - log q), with p of the first pass and q of the second
    backward = tl.zeros([BLOCK], dtype=tl.float32)  # q (log q - log p)
    for start in range(0, vocab, BLOCK):
        column = start + tl.arange(0, BLOCK)
        log_p = load_logits(first, column, vocab, padded) - lse_1
        log_q = load_logits(second, column, vocab, padded) - lse_2
        ratio = tl.where(column < vocab, log_p - log_q, 0.0)
        forward += tl.exp(log_p) * ratio
        backward -= tl.exp(log_q) * ratio
    kl_1 = tl.sum(forward, 0)
    kl_2 = tl.sum(backward, 0)
    learned = target != IGNORE
    place = tl.where(learned, target, 0)
    chosen = tl.load(first + place).to(tl.float32) + tl.load(second + place).to(tl.float32)
    plain = lse_1 + lse_2 - (1 - smoothing) * chosen - smoothing * (total_1 + total_2) / vocab
    tl.store(LOSSES + pair, tl.where(learned, plain / 2 + weight * (kl_1 + kl_2), 0.0))
    for start in range(0, padded, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = learned & (column < vocab)
        log_p = load_logits(first, column, vocab, padded) - lse_1
        log_q = load_logits(second, column, vocab, padded) - lse_2
        ratio = tl.where(column < vocab, log_p - log_q, 0.0)
        p = tl.exp(log_p)
        q = tl.exp(log_q)
        wanted = tl.where(column == target, 1 - smoothing, 0.0) + smoothing / vocab
        of_p = (p - wanted) / 2 + weight * (p * (ratio - kl_1) + p - q)
        of_q = (q - wanted) / 2 + weight * (q * (-ratio - kl_2) + q - p)
        tl.store(first + column, tl.where(inside, of_p, 0.0).to(LOGITS.dtype.element_ty), mask=column < padded)
        tl.store(second + column, tl.where(inside, of_q, 0.0).to(LOGITS.dtype.element_ty), mask=column < padded)


class LinearCrossEntropy(torch.autograd.Function):
    """The sum of the cross-entropies of `hidden @ weight.T` against targets, or of R-Drop's losses; with gradients."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, consistency: float
    ) -> Tensor:
        """Hidden states (N*P, D), in the dtype to multiply in, weight (V, D), targets (N,) -> the sum of the losses."""
        vocab = weight.size(0)
        padded = -(-vocab // ALIGNED_COLUMNS) * ALIGNED_COLUMNS
        matrix = F.pad(weight.to(hidden.dtype), (0, 0, 0, padded - vocab))
        block = min(LOGITS_AT_ONCE, triton.next_power_of_2(padded))
        chunk = max(ALIGNED_COLUMNS, CHUNK_BYTES // (padded * hidden.element_size()) // 2 * 2)  # whole pairs
        passes = 2 if consistency else 1
        losses = torch.empty(targets.size(0), device=hidden.device)
        hidden_gradient = torch.empty_like(hidden)
        matrix_gradient = torch.zeros_like(matrix, dtype=torch.float32)
        for begin in range(0, hidden.size(0), chunk):
            rows = slice(begin, begin + chunk)
            logits = hidden[rows] @ matrix.T  # (C, V)
            own = slice(begin // passes, (begin + chunk) // passes)
            numbers = (logits, targets[own], losses[own], logits.stride(0), vocab, padded, smoothing)
            options = {"SMOOTHED": smoothing > 0, "BLOCK": block, "num_warps": max(1, block // 256)}
            if passes == 1:
                replace_by_gradient[(logits.size(0),)](*numbers, **options)
            else:
                replace_pairs_by_gradient[(logits.size(0) // 2,)](*numbers, consistency / 4, **options)
            torch.mm(logits, matrix, out=hidden_gradient[rows])
            matrix_gradient += logits.T @ hidden[rows]
        ctx.save_for_backward(hidden_gradient, matrix_gradient[:vocab])
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The gradients were computed with the loss: they only need to be scaled."""
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * gradient.to(hidden_gradient.dtype), weight_gradient * gradient, None, None, None


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.0, consistency: float = 0.0
) -> Tensor:
    """Equals `F.cross_entropy(F.linear(hidden, weight), targets, reduction="sum", label_smoothing=smoothing)`.

    With `consistency`, the weight of R-Drop, there are two neighbouring hidden states for each target, and it is the
    same as `paired_cross_entropy` in train/loss.py.
    """
    result: Tensor = LinearCrossEntropy.apply(hidden, weight, targets, smoothing, consistency)
    return result


def fast_cross_entropy(head: Head, hidden: Tensor, targets: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """`train.loss.cross_entropy_of` without all logits in memory, for one whole matrix without bias."""
    project = head.project
    assert project is not None
    if project.bias is not None or is_sharded(project.weight):
        return cross_entropy_of(head, hidden, targets, smoothing, r_drop)
    features = head.features(hidden)
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else features.dtype
    return linear_cross_entropy(features.to(dtype), project.weight, targets, smoothing, r_drop)
