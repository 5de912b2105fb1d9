"""Chapter 11: post-norm and pre-norm, with and without a warm-up of the learning rate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from small import BLUE, ORANGE, accuracy, main, panels, report, reversals, small_model, steps, table

LENGTH = 8
LAYERS = 6
STEPS = 250
WARMUP = 100
RATE = 5e-3


def trained(order: str, warmup: int) -> tuple[list[float], float]:
    """The losses of a training, and percent of tokens that are right after it."""
    model = small_model(norm_order=order, layers=LAYERS)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for step, (ids, answers) in zip(range(steps(STEPS)), reversals(LENGTH)):  # noqa: B905
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / warmup)
        loss = F.cross_entropy(model(ids).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, accuracy(model, reversals(LENGTH, seed=99))


def compare() -> None:
    """All four combinations."""
    figure, (axis,) = panels(1, 5.5)
    rows = []
    for order, colour in (("pre", BLUE), ("post", ORANGE)):
        for warmup, style in ((1, "-"), (WARMUP, "--")):
            losses, right = trained(order, warmup)
            name = f"{order}-norm, {'no warm-up' if warmup == 1 else f'warm-up of {warmup} steps'}"
            axis.plot(losses, style, color=colour, label=name, linewidth=1)
            rows.append([name, f"{sum(losses[-10:]) / len(losses[-10:]):.3f}", f"{right:.0f} %"])
    axis.set(title=f"{LAYERS} blocks learn to reverse {LENGTH} tokens: loss", xlabel="step", ylim=(0, 3.2))
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    report("norm_order", table(["", "loss of the last 10 steps", "tokens right"], rows), figure)


if __name__ == "__main__":
    main(compare)
