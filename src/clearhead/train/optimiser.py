"""Optimisers: AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from clearhead.config import TrainConfig
from clearhead.train.muon import Muon


def make_optimisers(model: nn.Module, config: TrainConfig) -> list[Optimizer]:
    """Optimisers that together hold every trainable parameter exactly once; one without parameters is left out.

    Weight decay applies to matrices only: biases and gains of norms are not pulled towards zero.
    """
    rest, for_muon = parameters_by_optimiser(model, config.optimiser)
    groups = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    device = (rest or for_muon)[0].device
    on_gpu = device.type == "cuda"
    rate = torch.tensor(config.learning_rate, device=device) if on_gpu else config.learning_rate
    optimisers: list[Optimizer] = []
    if rest:
        groups = [group for group in groups if group["params"]]
        betas = (config.beta1, config.beta2)
        optimisers.append(AdamW(groups, lr=rate, betas=betas, fused=True, capturable=on_gpu))
    if for_muon:
        optimisers.append(Muon(for_muon, rate, config.weight_decay))
    return optimisers


def parameters_by_optimiser(model: nn.Module, optimiser: str) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The trainable parameters for AdamW, and those for Muon: the matrices inside the blocks, if it is chosen."""
    trainable = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for_muon = [p for name, p in trainable if optimiser == "muon" and ".blocks." in name and p.dim() == 2]
    taken = {id(p) for p in for_muon}
    return [p for _, p in trainable if id(p) not in taken], for_muon


def set_learning_rate(optimisers: list[Optimizer], rate: float) -> None:
    """Set the learning rate of every parameter group; on a GPU in its memory, where CUDA graphs read it."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
