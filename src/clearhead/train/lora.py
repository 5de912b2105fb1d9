"""LoRA: learn a small correction beside each frozen matrix, W + B A, and add it in when all is learned."""

from __future__ import annotations

import fnmatch
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import require


class LowRank(nn.Linear):
    """A matrix that stays as it is, and a correction of low rank that learns. It starts as the matrix alone: B is 0."""

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__(base.in_features, base.out_features, base.bias is not None, device="meta")
        self.weight, self.bias = base.weight, base.bias
        self.scale = scale
        self.correction_a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.correction_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.correction_a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """W x + scale B A x, the correction never written out as a matrix."""
        return super().forward(x) + self.scale * F.linear(F.linear(x, self.correction_a), self.correction_b)


def add_corrections(model: nn.Module, rank: int, patterns: str, scale: float = 2.0) -> None:
    """Freeze the model, and put a learning correction beside every matrix whose name matches one of the patterns."""
    linears = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    chosen = {n: m for n, m in linears.items() if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns.split())}
    require(
        bool(chosen), f"train.lora_on = {patterns!r}: no matrix has such a name; they look like {next(iter(linears))}"
    )
    model.requires_grad_(False)
    for name, linear in chosen.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, LowRank(linear, rank, scale))


@torch.no_grad()
def merge_corrections(model: nn.Module) -> None:
    """Add every correction to its matrix: the model is plain again, and computes the same."""
    for name, module in list(model.named_modules()):
        if isinstance(module, LowRank):
            module.weight += module.scale * module.correction_b @ module.correction_a
            plain = nn.Linear(module.in_features, module.out_features, module.bias is not None, device="meta")
            plain.weight, plain.bias = module.weight, module.bias
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, plain)
