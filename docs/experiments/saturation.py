"""Chapter 6: what softmax does to the scores of longer vectors, with and without the division by sqrt(d_k)."""

from __future__ import annotations

import torch
from small import BLUE, ORANGE, main, panels, report, table
from torch import Tensor

SIZES = [1, 4, 16, 64, 256, 1024]
KEYS = 16


def attend(size: int, scaled: bool) -> tuple[float, float, float]:
    """Of random queries and keys: the scores' standard deviation, the largest weight, and the gradient's norm."""
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(2000, 1, size, generator=generator)
    keys = torch.randn(2000, KEYS, size, generator=generator)
    scores = (queries @ keys.mT)[:, 0] / (size**0.5 if scaled else 1.0)
    weights = scores.softmax(-1)
    return float(scores.std()), float(weights.amax(-1).mean()), float(jacobian(weights).flatten(1).norm(dim=-1).mean())


def jacobian(weights: Tensor) -> Tensor:
    """The derivative of each weight with respect to each score: diag(a) - a aᵀ."""
    return torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]


def compare() -> None:
    """Both versions for all sizes."""
    plain = [attend(size, scaled=False) for size in SIZES]
    scaled = [attend(size, scaled=True) for size in SIZES]
    figure, axes = panels(2)
    for name, results, colour in (("without", plain, ORANGE), ("divided by √d_k", scaled, BLUE)):
        axes[0].plot(SIZES, [each[1] for each in results], "o-", color=colour, label=name)
        axes[1].plot(SIZES, [each[2] for each in results], "o-", color=colour, label=name)
    axes[0].set(title=f"largest of {KEYS} weights (mean)", xlabel="d_k", xscale="log", ylim=(0, 1))
    axes[1].set(title="size of softmax's derivative", xlabel="d_k", xscale="log", ylim=(0, None))
    axes[0].legend(frameon=False)
    header = ["d_k", "std of scores", "largest weight", "derivative", "scaled: std", "largest weight", "derivative"]
    pairs = zip(SIZES, plain, scaled, strict=True)
    rows = [[str(n), *(f"{x:.2f}" for x in a), *(f"{x:.2f}" for x in b)] for n, a, b in pairs]
    report("saturation", table(header, rows), figure)


if __name__ == "__main__":
    main(compare)
