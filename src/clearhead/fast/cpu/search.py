"""Search, faster: each function returns what a plain line of PyTorch returns, and a test compares the two.

Shapes: B sentences, W hypotheses of each, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.fast.kernels import usable
from clearhead.model import State

BLOCK = 64  # numbers whose maximum is computed before the largest of a row are sought


def reorder(state: State, parents: Tensor) -> None:
    """`state.reorder(parents)`, which copies only the rows that move: in a beam, most stay where they are.

    For states that grow, never for a recorded one: a CUDA graph would keep the `cache.length` of its recording.
    """
    width = parents.size(1)
    sentences, moved = (parents != torch.arange(width, device=parents.device)).nonzero(as_tuple=True)
    if moved.numel() == 0:
        return
    here = sentences * width + moved
    there = sentences * width + parents[sentences, moved]
    stored = [t[:, :, : cache.length] for cache, _ in state.caches for t in cache.store]
    for t in (*stored, state.real, state.count):
        t.index_copy_(0, here, t.index_select(0, there))


class TopTokens:
    """`logits.log_softmax(-1).topk(k)`, which keeps the memory of the log-probabilities from step to step."""

    def __init__(self) -> None:
        self.buffer = torch.empty(0)

    def __call__(self, logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k largest log-probabilities of each row (B, V), and their tokens."""
        if usable(logits) and logits.dtype == torch.float32 and logits.size(1) >= BLOCK * k:
            from clearhead.fast.kernels.beam import best_candidates  # needs Triton

            return best_candidates(logits, k, BLOCK)
        if self.buffer.shape != logits.shape:
            self.buffer = torch.empty_like(logits)
        return topk(torch.log_softmax(logits, -1, out=self.buffer), k)


def topk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`x.topk(k)` of each row (B, V), faster on a CPU: values in descending order, and their indices.

    The k largest numbers lie in the k blocks with the largest maxima, or in the rest after the last whole block.
    """
    if x.size(1) < BLOCK * k:
        values, indices = x.topk(k)
        return values, indices
    whole = x.size(1) // BLOCK * BLOCK
    numbers = torch.arange(x.size(1), device=x.device)
    blocks = x[:, :whole].view(x.size(0), -1, BLOCK).amax(-1).topk(k).indices  # (B, k)
    inside = (blocks[..., None] * BLOCK + numbers[:BLOCK]).flatten(1)
    indices = torch.cat([inside, numbers[whole:].expand(x.size(0), -1)], dim=1)
    values, chosen = x.gather(1, indices).topk(k)
    return values, indices.gather(1, chosen)
