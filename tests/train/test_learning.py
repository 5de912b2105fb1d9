"""A learning test says more than a thousand golden numbers: copy, reverse and sort, from a random seed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import Family
from clearhead.model import build_model
from clearhead.presets import PRESETS

LENGTH, LETTERS, START, ARROW = 6, 12, 0, 1
STEPS = 800  # at most: it stops when at most one letter of a batch is wrong
TASKS = {
    "copy": lambda x: x,
    "reverse": lambda x: x.flip(1),
    "sort": lambda x: x.sort(1).values,
}


def predict(model: torch.nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The logits for y, each family in its own way."""
    first = torch.full_like(x[:, :1], START)
    if model.config.family == "encoder-decoder":
        return model(x, torch.cat([first, y[:, :-1]], dim=1))
    if model.config.family == "decoder-only":
        return model(torch.cat([x, first + ARROW, y[:, :-1]], dim=1))[:, LENGTH:]
    return model(x)


@pytest.mark.long
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "encoder-only"])
@pytest.mark.parametrize(
    ("order", "task"), [("post", "copy"), ("post", "reverse"), ("pre", "reverse"), ("pre", "sort")]
)
def test_every_family_learns_to_solve_its_task(order: str, task: str, family: Family) -> None:
    seed = torch.seed() % 2**32  # a new one every time: printed when it fails
    print(f"seed {seed}")  # noqa: T201
    torch.manual_seed(seed)
    model = build_model(replace(PRESETS[f"tiny-{family}"], vocab=LETTERS, norm_order=order, d_ff=128))
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.0, fused=True)
    for step in range(STEPS):
        x = torch.randint(2, LETTERS, (64, LENGTH))
        y = TASKS[task](x)
        logits = predict(model, x, y)
        if step % 10 == 0 and (logits.argmax(-1) != y).sum() <= 1:
            break
        optimiser.param_groups[0]["lr"] = 3e-3 * min(1.0, (step + 1) / 50, 2 - 2 * step / STEPS)
        optimiser.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    x = torch.randint(2, LETTERS, (500, LENGTH))
    y = TASKS[task](x)
    with torch.inference_mode():
        accuracy = (predict(model.eval(), x, y).argmax(-1) == y).float().mean().item()
    assert accuracy >= 0.95, f"{accuracy:.1%} after {step} steps"  # guessing gives 10 %; most seeds give 99 %
