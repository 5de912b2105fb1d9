"""The cross-entropy of a linear layer, without ever holding all logits.

The logits of 65,536 tokens over 50,257 words take 6.6 GB in bfloat16 and twice that in float32. Here they are computed
a chunk at a time. The gradient of the loss with respect to a chunk's logits is known as soon as the logits are, so it
overwrites them, and the gradients of the hidden states and of the weight follow at once, in the forward pass.

Shapes: N targets, D model, V vocabulary, C rows of a chunk.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

IGNORE = tl.constexpr(-100)  # a target that is not learned
CHUNK_BYTES = 2**30  # of the logits that are held at once
BLOCK = 8192  # logits that a program reads at once: with fewer, more rows would compete for the cache
ALIGNED = 128  # matrix products are fastest with a multiple of this many columns


@triton.jit
def load_logits(logits, column, vocab, padded):
    x = tl.load(logits + column, mask=column < padded, other=0.0).to(tl.float32)  # 16 bytes at once: padded is aligned
    return tl.where(column < vocab, x, -float("inf"))


@triton.jit
def replace_by_gradient(
    LOGITS, TARGETS, LOSSES, stride, vocab, padded, smoothing, SMOOTHED: tl.constexpr, BLOCK: tl.constexpr
):  # one program for each row of (C, padded) logits
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(TARGETS + row)
    logits = LOGITS + row * stride
    highest = tl.full([BLOCK], -1e30, dtype=tl.float32)  # of every BLOCK-th column: joined after the loop
    sums = tl.zeros([BLOCK], dtype=tl.float32)  # of exp(logit - highest)
    plain = tl.zeros([BLOCK], dtype=tl.float32)  # of logits
    for start in range(0, vocab, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = load_logits(logits, column, vocab, padded)
        ratio = tl.exp(-tl.abs(x - highest))  # of the smaller to the larger of the two
        sums = tl.where(x > highest, sums * ratio + 1.0, sums + ratio)
        highest = tl.maximum(highest, x)
        if SMOOTHED:
            plain += tl.where(column < vocab, x, 0.0)
    top = tl.max(highest, 0)
    logsumexp = top + tl.log(tl.sum(sums * tl.exp(highest - top), 0))
    total = tl.sum(plain, 0)
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


class LinearCrossEntropy(torch.autograd.Function):
    """The sum of the cross-entropies of `hidden @ weight.T` against targets, with its gradients."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        """Hidden states (N, D), in the dtype to multiply in, weight (V, D), targets (N,) -> the sum of the losses."""
        vocab = weight.size(0)
        padded = -(-vocab // ALIGNED) * ALIGNED
        matrix = F.pad(weight.to(hidden.dtype), (0, 0, 0, padded - vocab))
        block = min(BLOCK, triton.next_power_of_2(padded))
        chunk = max(ALIGNED, CHUNK_BYTES // (padded * hidden.element_size()))
        losses = torch.empty(hidden.size(0), device=hidden.device)
        hidden_gradient = torch.empty_like(hidden)
        matrix_gradient = torch.zeros_like(matrix, dtype=torch.float32)
        for begin in range(0, hidden.size(0), chunk):
            rows = slice(begin, begin + chunk)
            logits = hidden[rows] @ matrix.T  # (C, V)
            replace_by_gradient[(logits.size(0),)](
                logits, targets[rows], losses[rows], logits.stride(0), vocab, padded, smoothing,
                smoothing > 0, block, num_warps=max(1, block // 256),
            )  # fmt: skip
            torch.mm(logits, matrix, out=hidden_gradient[rows])
            matrix_gradient += logits.T @ hidden[rows]
        ctx.save_for_backward(hidden_gradient, matrix_gradient[:vocab])
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The gradients were computed with the loss: they only need to be scaled."""
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * gradient.to(hidden_gradient.dtype), weight_gradient * gradient, None, None


def linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The same as `F.cross_entropy(F.linear(hidden, weight), targets, reduction="sum", label_smoothing=smoothing)`."""
    result: Tensor = LinearCrossEntropy.apply(hidden, weight, targets, smoothing)
    return result
