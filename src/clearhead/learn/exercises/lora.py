"""The exercise `lora`: an adapter beside a frozen matrix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
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


def starts(piece: Piece) -> dict[str, Any]:
    """Shapes of the first matrices, and whether they are zero."""
    a, b = piece.start(6, 5, 2)
    return {
        "the shape of A": list(a.shape),
        "the shape of B": list(b.shape),
        "B is 0": not b.any(),
        "A is 0": not a.any(),
    }


def cases() -> list[Case]:
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
        Case("A and B at the start", starts),
    ]


FORWARD = "x @ weight.T + scale * (x @ a.T) @ b.T"
MERGED = "weight + scale * b @ a"
MISTAKES = (
    Mistake(
        "The scale is missing",
        "The adapter's output is multiplied by `scale` before it is added.",
        FORWARD,
        "x @ weight.T + (x @ a.T) @ b.T",
    ),
    Mistake(
        "The frozen matrix is missing",
        "The adapter is added to what the frozen matrix gives: W x + ...",
        FORWARD,
        "scale * (x @ a.T) @ b.T",
    ),
    Mistake(
        "The adapter is missing",
        "Add scale · B (A x).",
        FORWARD,
        "x @ weight.T",
    ),
    Mistake(
        "The scale multiplies the frozen matrix, too",
        "Only the adapter is scaled.",
        FORWARD,
        "scale * (x @ weight.T + (x @ a.T) @ b.T)",
    ),
    Mistake(
        "The matrices are not transposed",
        "A weight is (D_out, D_in), so W x is x @ weight.T for rows of tokens.",
        FORWARD,
        "x @ weight + scale * (x @ a) @ b",
    ),
    Mistake(  # the formula as it is written, for one column
        "The matrices are on the left",
        "The formula is for one token as a column. Tokens are the rows of x here, so W x is x @ weight.T.",
        FORWARD,
        "weight @ x + scale * b @ (a @ x)",
    ),
    Mistake(
        "A and B are exchanged",
        "x meets A first, which makes R numbers of D_in; then B, which makes D_out of R.",
        FORWARD,
        "x @ weight.T + scale * (x @ b.T) @ a.T",
    ),
    Mistake(
        "The merge forgets the scale",
        "merge must do the same as lora: weight + scale · B A.",
        MERGED,
        "weight + b @ a",
    ),
    Mistake(
        "The merge multiplies A B instead of B A",
        "x meets A first, so A stands on the right: B (A x) = (B A) x.",
        MERGED,
        "weight + scale * a @ b",
    ),
    Mistake(
        "The merge adds the transposed product",
        "B A is (D_out, D_in), as weight is: nothing is transposed.",
        MERGED,
        "weight + scale * (b @ a).T",
    ),
    Mistake(
        "B does not start at 0",
        "With B at 0 the adapter changes nothing at first, and training starts from the model as it was.",
        "torch.zeros(outputs, rank)",
        "torch.randn(outputs, rank)",
    ),
    Mistake(
        "A starts at 0, too",
        "The gradient of A is a product with B, and that of B a product with A: with both at 0, both gradients are 0.",
        "torch.randn(rank, inputs) / rank",
        "torch.zeros(rank, inputs)",
    ),
    Mistake(
        "It is A that starts at 0, not B",
        "This would train as well, but the paper and everybody else have B at 0 and A random.",
        "torch.randn(rank, inputs) / rank, torch.zeros(outputs, rank)",
        "torch.zeros(rank, inputs), torch.randn(outputs, rank)",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """The adapters of all matrices of the demo's blocks; the matrices themselves were trained before, and stay."""

    def forward(self: LoRALinear, x: Tensor) -> Tensor:
        result: Tensor = piece.lora(x, self.weight, self.correction_a, self.correction_b, SCALE)
        return result if self.bias is None else result + self.bias

    return [Patch(LoRALinear, "forward", forward)]


EXERCISE = Exercise(
    name="lora",
    reference=SimpleNamespace(start=reference_start, lora=reference, merge=reference_merge),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "For tokens in rows, W x is x @ weight.T.",
        "First x @ a.T, which has only R channels, then @ b.T. Multiply by scale, add to x @ weight.T.",
        "(B A) x = B (A x), so the merged matrix is weight + scale * b @ a.",
    ),
    swap=swap,
    settings="train.lora=8 train.lora_on=*.blocks.* train.optimiser=adamw data.size=20",  # few enough to be learned
    fine_tunes=True,
)
