"""The best evaluation of a run: what the model is evaluated on, and the weights of the best evaluation if kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.data.loader import Batches
from clearhead.device import Machine
from clearhead.evaluate.scores import evaluate
from clearhead.runs import Run, Tensors
from clearhead.train.average import copy_of
from clearhead.train.checkpoint import model_tensors
from clearhead.train.parallel import Group, shard_like


@dataclass(frozen=True)
class Validation:
    """What a model is evaluated on during training: batches for the loss, a run for every other score."""

    batches: Batches
    run: Run  # the model that is being trained, with its tokenizers

    def scores(self, machine: Machine, group: Group) -> dict[str, float]:
        """The score that `train.best_by` names, if it is not the loss; every process must call it."""
        config = self.run.recipe.train
        if config.best_by == "loss":
            return {}
        with machine.autocast(), torch.compiler.set_stance("force_eager"):
            score = evaluate(self.run, "valid", config.best_examples, beam=1, quiet=True)[config.best_by]
        return {config.best_by: group.sum(score if group.is_main else 0.0)[0]}


class BestEvaluation:
    """The best evaluation so far, and how many evaluations came after it."""

    def __init__(self, config: TrainConfig) -> None:
        self.by = config.best_by
        self.keep_weights = config.keep == "best"
        self.value = math.inf if self.by == "loss" else -math.inf
        self.waited = 0  # evaluations since the best one
        self.weights: Tensors = {}  # of the best evaluation, if kept; with FSDP the shards of this process

    def update(self, value: float, model: nn.Module) -> bool:
        """Whether an evaluation is better than all before it; `model` must have the weights that were evaluated."""
        better = value < self.value if self.by == "loss" else value > self.value
        self.waited = 0 if better else self.waited + 1
        if better:
            self.value = value
        if better and self.keep_weights:
            self.weights = copy_of(model_tensors(model))
        return better

    def facts(self) -> dict[str, float]:
        """What a checkpoint must hold besides the weights."""
        return {"best": self.value, "waited": self.waited}

    def restore(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], model: nn.Module) -> None:
        """Continue from what a checkpoint holds."""
        self.value = facts["best"]
        self.waited = facts["waited"]
        own = model_tensors(model)
        self.weights = {name: shard_like(tensor, own[name]) for name, tensor in tensors.items()}
