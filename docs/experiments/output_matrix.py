"""Chapter 9: training with and without the output matrix of attention; and both without the feed-forward network.

Eight heads of four channels learn to reverse sequences of 12 tokens in one block.
"""

from __future__ import annotations

import torch
from small import BLUE, ORANGE, accuracy, main, panels, report, reversals, small_model, steps_until, table, train
from torch import Tensor, nn

LENGTH = 12
SEEDS = 2
STEPS = 400


class Nothing(nn.Module):
    """A sublayer that adds nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> zeros (B, T, D)."""
        return torch.zeros_like(x)


def changed(seed: int, output_matrix: bool, feed_forward: bool) -> nn.Module:
    """A model of one block, with or without these parts."""
    model = small_model(seed, heads=8, layers=1, position="sinusoidal")
    block = model.encoder.blocks[0]
    if not output_matrix:
        block.attention.out = nn.Identity()
    if not feed_forward:
        block.feed_forward = Nothing()
    return model


def compare() -> None:
    """Both parts, each of them, neither."""
    rows = []
    figure, axes = panels(2)
    for axis, feed_forward in zip(axes, (True, False), strict=True):
        for output_matrix, colour in ((True, BLUE), (False, ORANGE)):
            name = "with W_O" if output_matrix else "concatenation only"
            right, until = [], []
            for seed in range(SEEDS):
                model = changed(seed, output_matrix, feed_forward)
                losses = train(model, reversals(LENGTH), STEPS)
                axis.plot(losses, color=colour, label=name if seed == 0 else None, linewidth=1)
                right.append(f"{accuracy(model, reversals(LENGTH, seed=99)):.0f} %")
                until.append(steps_until(losses, 0.1))
            part = "with" if feed_forward else "without"
            rows.append([name, f"{part} feed-forward", ", ".join(right), ", ".join(until)])
        axis.set(title=f"{part} feed-forward network: loss", xlabel="step", ylim=(0, 3))
    axes[0].legend(frameon=False)
    header = ["heads", "block", f"tokens right, {SEEDS} seeds", "steps until the loss is below 0.1"]
    report("output_matrix", table(header, rows), figure)


if __name__ == "__main__":
    main(compare)
