"""Muon: momentum with orthogonalised updates, so that all directions of a matrix are learned at the same rate.

The gradient of a matrix, U S Vᵀ, is dominated by a few singular directions. Muon replaces it by U Vᵀ, the nearest
matrix with equal singular values. The Newton-Schulz iteration finds it with matrix products alone.
`torch.optim.Muon` always computes in bfloat16, one matrix after the other. This one computes all matrices of the same
shape at once, and on a CPU in float32; what that saves is measured in docs/architecture.md (decision 18).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

STEPS = 3  # of Newton-Schulz; five are usual, but two more did not improve the phrasebook (docs/results.md)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of x, x³, x⁵: each step moves the singular values towards 1
UPDATE_RMS = 0.2  # root mean square of an update, about that of AdamW: both can share one learning rate


class Muon(Optimizer):
    """Muon (Keller Jordan, 2024) with Nesterov momentum, and updates as large as AdamW's."""

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        assert closure is None, "the training loop computes the loss itself"
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape.setdefault(matrix.shape, []).append(matrix)
            for matrices in by_shape.values():
                self._update(matrices, **{name: group[name] for name in ("lr", "weight_decay", "momentum")})

    def _update(self, matrices: list[nn.Parameter], lr: float, weight_decay: float, momentum: float) -> None:
        updates = []
        for matrix in matrices:
            buffer = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
            buffer.lerp_(matrix.grad, 1 - momentum)
            updates.append(matrix.grad.lerp(buffer, momentum))  # type: ignore[union-attr]  # Nesterov: one step ahead
        scale = UPDATE_RMS * math.sqrt(max(matrices[0].shape))
        for matrix, update in zip(matrices, orthogonalise(torch.stack(updates)), strict=True):
            matrix.mul_(1 - lr * weight_decay).add_(update, alpha=-lr * scale)


def orthogonalise(matrices: Tensor) -> Tensor:
    """Approximately U Vᵀ for each matrix U S Vᵀ, (N, A, B) -> (N, A, B).

    Singular values end up between 0.7 and 1.2, except those that were very small.
    """
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.size(1) > x.size(2)
    x = x.mT if tall else x  # so that x xᵀ is the smaller of the two squares
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)  # no singular value is above 1
    for _ in range(STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).type_as(matrices)
