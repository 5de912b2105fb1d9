"""LoRA: adapt a frozen matrix.

A large matrix W (D_out, D_in) stays as it is. Beside it, two thin matrices are trained: A (R,
D_in) and B (D_out, R), where the rank R is small. Their product is what is added to W, times a
scale; at the end it can be merged into W for good.

    W x + scale · B (A x)

B starts at 0, so that nothing changes at first. A must not: with both at 0, no gradient would
ever reach either.
"""

import torch
from torch import Tensor


def start(inputs: int, outputs: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return A (rank, inputs), with small random numbers, and B (outputs, rank), with zeros."""
    return torch.randn(rank, inputs) / rank, torch.zeros(outputs, rank)


def lora(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return W x + scale · B (A x) for each token: (..., D_in) -> (..., D_out), without ever computing B A."""
    return x @ weight.T + scale * (x @ a.T) @ b.T


def merge(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return the one matrix (D_out, D_in) that does the same as weight and adapter together."""
    return weight + scale * b @ a
