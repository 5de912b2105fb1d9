"""The exercise `lora`: an adapter beside a frozen matrix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.train.lora import SCALE, LoRALinear, merge_lora


def adapted(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> LoRALinear:
    """The project's own layer, whose scale is always SCALE."""
    base = nn.Linear(weight.size(1), weight.size(0), bias=False)
    base.weight.data = weight.clone()
    layer = LoRALinear(base, a.size(0))
    layer.correction_a.data = a
    layer.correction_b.data = b * scale / SCALE
    return layer


def reference_start(inputs: int, outputs: int, rank: int) -> tuple[Tensor, Tensor]:
    """The project's own initial matrices."""
    layer = LoRALinear(nn.Linear(inputs, outputs), rank)
    return layer.correction_a.data, layer.correction_b.data


def reference(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """The project's own forward pass."""
    return adapted(weight, a, b, scale)(x)


def reference_merge(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """The project's own merge."""
    model = nn.Sequential(adapted(weight, a, b, scale))
    merge_lora(model)
    [layer] = model
    assert isinstance(layer, nn.Linear)
    return layer.weight.data


REFERENCE = SimpleNamespace(start=reference_start, lora=reference, merge=reference_merge)


def starts(piece: Piece) -> dict[str, Any]:
    """Shapes of the first matrices, and whether they are zero."""
    a, b = piece.start(6, 5, 2)
    return {
        "the shape of A": list(a.shape),
        "the shape of B": list(b.shape),
        "B is 0": not b.any(),
        "A is 0": not a.any(),
    }


def cases() -> list[ExerciseCase]:
    """The forward pass, before and after training; merging; the start."""
    x = torch.randn(2, 3, 6)
    weight = torch.randn(5, 6)
    a = torch.randn(2, 6)
    b = torch.randn(5, 2)
    square = (torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4))
    return [
        call("lora", "an adapter of rank 2", x, weight, a, b, 2.0),
        call("lora", "square matrices", torch.randn(3, 4), *square, 0.5),
        call("merge", "merge an adapter of rank 2", weight, a, b, 2.0),
        call("merge", "merge square matrices", *square, 0.5),
        ExerciseCase("A and B at the start", starts),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The adapters of all matrices of the demo's blocks; the matrices themselves were trained before, and stay."""

    def forward(self: LoRALinear, x: Tensor) -> Tensor:
        result: Tensor = piece.lora(x, self.weight, self.correction_a, self.correction_b, SCALE)
        return result if self.bias is None else result + self.bias

    return [Patch(LoRALinear, "forward", forward)]
