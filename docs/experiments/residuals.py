"""Chapter 10: the same model with and without residual connections, for several depths."""

from __future__ import annotations

from unittest.mock import patch

import torch
import torch.nn.functional as F
from small import BLUE, ORANGE, accuracy, main, panels, report, reversals, small_model, steps, table, train
from torch import Tensor, nn

from clearhead.model.block import AddNorm

DEPTHS = [1, 2, 4, 8]
LENGTH = 8


def no_addition(self: AddNorm, _x: Tensor, sublayer: nn.Module) -> Tensor:
    """AddNorm.forward without the addition."""
    return sublayer(self.norm(_x))


def first_gradient(depth: int) -> float:
    """The norm of the loss's gradient for the first block's query matrix, before training."""
    model = small_model(layers=depth)
    ids, answers = next(reversals(LENGTH))
    F.cross_entropy(model(ids).flatten(0, 1), answers.flatten()).backward()
    return float(model.encoder.blocks[0].attention.query.weight.grad.norm())


def trained(depth: int) -> float:
    """Percent of tokens that are right after a short training."""
    model = small_model(layers=depth)
    train(model, reversals(LENGTH), 300 if depth < 8 else 250)
    return accuracy(model, reversals(LENGTH, seed=99))


def compare() -> None:
    """Both versions at every depth."""
    torch.manual_seed(0)
    depths = DEPTHS[:2] if steps(3) == 2 else DEPTHS
    kept = [(first_gradient(n), trained(n)) for n in depths]
    with patch.object(AddNorm, "forward", no_addition):
        removed = [(first_gradient(n), trained(n)) for n in depths]
    figure, axes = panels(2)
    for name, results, colour in (("with residuals", kept, BLUE), ("without", removed, ORANGE)):
        axes[0].plot(depths, [each[0] for each in results], "o-", color=colour, label=name)
        axes[1].plot(depths, [each[1] for each in results], "o-", color=colour, label=name)
    axes[0].set(title="gradient in the first block", xlabel="blocks", yscale="log")
    axes[1].set(title="tokens right after training (%)", xlabel="blocks", ylim=(0, 104))
    axes[0].legend(frameon=False)
    rows = [[str(n), f"{a[0]:.1e}", f"{b[0]:.1e}", f"{a[1]:.0f} %", f"{b[1]:.0f} %"]
            for n, a, b in zip(depths, kept, removed, strict=True)]  # fmt: skip
    header = ["blocks", "gradient, with", "gradient, without", "right, with", "right, without"]
    report("residuals", table(header, rows), figure)


if __name__ == "__main__":
    main(compare)
