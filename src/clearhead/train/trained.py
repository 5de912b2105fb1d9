"""Which parameters are trained, and how many: `train.freeze` excludes some, `train.lora` trains adapters instead."""

from __future__ import annotations

import fnmatch

import torch
from torch import nn

from clearhead.config import Recipe, TrainConfig, require
from clearhead.model import build_model
from clearhead.train.cost import FLOAT, ParameterCounts, parameter_lines, total
from clearhead.train.lora import add_lora
from clearhead.train.optimiser import parameters_by_optimiser


def choose_trained(model: nn.Module, config: TrainConfig) -> None:
    """Freeze what is not trained, and add the adapters of `train.lora`."""
    freeze(model, config.freeze)
    if config.lora:
        add_lora(model, config.lora, config.lora_on)


def freeze(model: nn.Module, patterns: str) -> None:
    """Exclude the parameters whose names match one of the patterns from training."""
    for pattern in patterns.split():
        names = [name for name, _ in model.named_parameters() if fnmatch.fnmatchcase(name, pattern)]
        require(
            bool(names),
            f"train.freeze: no parameter matches {pattern!r}; names look like encoder.blocks.0.attention.key.weight",
        )
        for name in names:
            model.get_parameter(name).requires_grad_(False)
    require(any(p.requires_grad for p in model.parameters()), f"train.freeze = {patterns!r} leaves nothing to train")


def count_parameters(model: nn.Module, optimiser: str) -> ParameterCounts:
    """Count the parameters of a model that is prepared for training."""
    for_adamw, for_muon = parameters_by_optimiser(model, optimiser)
    stored, adamw, muon = (sum(p.numel() for p in some) for some in (model.parameters(), for_adamw, for_muon))
    return ParameterCounts(stored, adamw + muon, muon)


def estimate_counts(recipe: Recipe) -> ParameterCounts:
    """Count the parameters of the model that a recipe would train, without memory for them."""
    n = total(parameter_lines(recipe.model))
    require(
        FLOAT * n < 2**63,  # PyTorch counts bytes in 64 bits
        f"a model of {n:,} parameters is too large; make it smaller (model.d_model, model.d_ff, model.layers)",
    )
    with torch.device("meta"):
        model = build_model(recipe.model)
        choose_trained(model, recipe.train)
    return count_parameters(model, recipe.train.optimiser)
