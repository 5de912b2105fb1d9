"""Optimisers: AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest."""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW, Optimizer

from clearhead.config import TrainConfig
from clearhead.train.muon import Muon


def make_optimisers(model: nn.Module, config: TrainConfig) -> list[Optimizer]:
    """Optimisers that together hold every parameter that learns, each exactly once.

    Weight decay pulls at matrices only: a bias or a norm's gain has no scale to keep small.
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    hidden = [p for name, p in named if config.optimiser == "muon" and ".blocks." in name and p.dim() == 2]
    taken = {id(p) for p in hidden}
    rest = [p for _, p in named if id(p) not in taken]
    groups = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    betas = (config.beta1, config.beta2)
    optimisers: list[Optimizer] = [
        AdamW([group for group in groups if group["params"]], lr=config.learning_rate, betas=betas, fused=True)
    ]
    if hidden:
        optimisers.append(Muon(hidden, config.learning_rate, config.weight_decay))
    return optimisers


def set_learning_rate(optimisers: list[Optimizer], rate: float) -> None:
    """Give every group this learning rate."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = rate
