"""The best evaluation of a run, and its weights if they are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.runs import Tensors
from clearhead.train.average import copy_of
from clearhead.train.checkpoint import model_tensors
from clearhead.train.parallel import shard_like


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
