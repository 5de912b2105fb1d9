"""Chapter 12: what a block can compute without its feed-forward network: a fact about two other tokens.

The right answer to a token is looked up in a table of 16 x 16 random tokens, by its left and its right neighbour.
Attention can fetch both neighbours, but what it fetches is added; the answer is not a sum of something about the one
and something about the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from small import BLUE, ORANGE, RED, Batch, accuracy, main, panels, report, small_model, table, train
from torch import Tensor, nn

TABLE = torch.randint(16, (16, 16), generator=torch.Generator().manual_seed(0))


def pairs(batch: int = 64, length: int = 10, seed: int = 1) -> Iterator[Batch]:
    """Random tokens, and what the table says about the two neighbours of each (the sequence is a ring)."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        ids = torch.randint(16, (batch, length), generator=generator)
        yield ids, TABLE[ids.roll(1, dims=1), ids.roll(-1, dims=1)]


class Nothing(nn.Module):
    """A sublayer that adds nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> zeros (B, T, D)."""
        return torch.zeros_like(x)


class Linear(nn.Module):
    """A feed-forward network without its nonlinearity."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.up, self.down = network.up, network.down

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.down(self.up(x))


def compare() -> None:
    """With it, without its nonlinearity, without the norm before it as well, without it."""
    changes = {
        "attention and feed-forward": None,
        "without the nonlinearity": Linear,
        "also without the norm before it": Linear,
        "attention alone": lambda _: Nothing(),
    }
    rows = []
    figure, (axis,) = panels(1, 5.0)
    for (name, change), colour in zip(changes.items(), (BLUE, "#888888", RED, ORANGE), strict=True):
        model = small_model(layers=1, heads=2, position="learned", tied="none", d_ff=256)
        if change is not None:
            block = model.encoder.blocks[0]
            block.feed_forward = change(block.feed_forward)
        if "norm" in name:
            block.feed_forward_add_norm.norm = nn.Identity()
        axis.plot(train(model, pairs(), 600), color=colour, label=name, linewidth=1)
        rows.append([name, f"{accuracy(model, pairs(seed=99)):.0f} %"])
    axis.set(title="a table of pairs is learned: loss", xlabel="step", ylim=(0, 4))
    axis.legend(frameon=False, loc="upper right", fontsize=9)
    report("feed_forward", table(["one block with", "tokens right"], rows), figure)


if __name__ == "__main__":
    main(compare)
