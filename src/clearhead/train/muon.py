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

from clearhead.fast.choose import scale_and_add

NEWTON_SCHULZ_STEPS = (
    3  # of Newton-Schulz; five are usual, but two more did not improve the phrasebook (docs/results.md)
)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of x, x³, x⁵: each step moves the singular values towards 1
UPDATE_RMS = 0.2  # root mean square of an update, about that of AdamW: both can share one learning rate


class Muon(Optimizer):
    """Muon (Keller Jordan, 2024) with Nesterov momentum, and updates as large as AdamW's."""

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float | Tensor, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        self.found_inf: Tensor | None = None  # set by `GraphStep`: no update if it is 1, as in AdamW
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

    def _update(self, matrices: list[nn.Parameter], lr: float | Tensor, weight_decay: float, momentum: float) -> None:
        gradients = torch.stack([matrix.grad for matrix in matrices])  # type: ignore[misc]  # (N, A, B)
        keep: float | Tensor = 1 - momentum
        if self.found_inf is not None:
            gradients = gradients.masked_fill(self.found_inf > 0, 0)
            keep = keep * (1 - self.found_inf)
            lr = lr * (1 - self.found_inf)
        buffer = self._buffer(matrices)
        buffer.lerp_(gradients, keep)
        updates = orthogonalise(gradients.lerp(buffer, momentum))  # Nesterov: one step ahead
        scale = UPDATE_RMS * math.sqrt(max(matrices[0].shape))
        factor = -lr * scale
        if isinstance(factor, Tensor):
            updates, factor = updates * factor, 1.0
        scale_and_add(list(matrices), 1 - lr * weight_decay, list(updates), factor)

    def _buffer(self, matrices: list[nn.Parameter]) -> Tensor:
        """The momentum of matrices of one shape, (N, A, B); the state of each matrix is a slice of it."""
        slices = [self.state[matrix].get("momentum_buffer") for matrix in matrices]
        base = None if slices[0] is None else slices[0]._base
        if base is None or len(base) != len(matrices) or any(part is None or part._base is not base for part in slices):
            pairs = zip(matrices, slices, strict=True)
            base = torch.stack([torch.zeros_like(matrix) if part is None else part for matrix, part in pairs])
            for matrix, part in zip(matrices, base, strict=True):
                self.state[matrix]["momentum_buffer"] = part
        return base


def orthogonalise(matrices: Tensor) -> Tensor:
    """Approximately U Vᵀ for each matrix U S Vᵀ, (N, A, B) -> (N, A, B).

    Singular values end up between 0.7 and 1.2, except those that were very small.
    """
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.size(1) > x.size(2)
    x = x.mT if tall else x  # so that x xᵀ is the smaller of the two squares
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)  # no singular value is above 1
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).type_as(matrices)
