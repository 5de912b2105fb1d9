"""Muon: momentum whose matrices are made orthogonal, so that every direction is learned at the same pace.

A gradient of a matrix is mostly a few strong directions. Muon replaces it by the nearest matrix all of whose directions
are equally strong: U Vᵀ, where the gradient is U S Vᵀ. Newton-Schulz's iteration finds it with matrix products alone.
`torch.optim.Muon` computes in bfloat16 always, one matrix after the other. This one computes all matrices of a shape at
once, and on a CPU in float32; what that saves is measured in docs/architecture.md (decision 18).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

STEPS = 3  # five are usual; two more, which bring up weak directions, taught the phrasebook no more (docs/results.md)
FACTORS = (3.4445, -4.7750, 2.0315)  # of x, x³, x⁵: each step takes singular values up, large ones to about 1


class Muon(Optimizer):
    """Muon (Keller Jordan, 2024) with Nesterov momentum, and updates of the size that AdamW's have."""

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        assert closure is None, "the loop computes the loss itself"
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for matrices in shapes.values():
                self._move(matrices, **{name: group[name] for name in ("lr", "weight_decay", "momentum")})

    def _move(self, matrices: list[nn.Parameter], lr: float, weight_decay: float, momentum: float) -> None:
        updates = []
        for matrix in matrices:
            memory = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
            memory.lerp_(matrix.grad, 1 - momentum)
            updates.append(matrix.grad.lerp(memory, momentum))  # type: ignore[union-attr]  # Nesterov: a look ahead
        size = 0.2 * math.sqrt(max(matrices[0].shape))  # an update of AdamW has a root mean square of about 0.2
        for matrix, update in zip(matrices, orthogonal(torch.stack(updates)), strict=True):
            matrix.mul_(1 - lr * weight_decay).add_(update, alpha=-lr * size)


def orthogonal(matrices: Tensor) -> Tensor:
    """About U Vᵀ of each matrix U S Vᵀ, (N, A, B) -> (N, A, B): but for small ones, singular values of 0.7 to 1.2."""
    a, b, c = FACTORS
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.size(1) > x.size(2)
    x = x.mT if tall else x  # the square below is then the smaller one
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)  # no singular value above 1
    for _ in range(STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).type_as(matrices)
