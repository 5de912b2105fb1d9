"""The best evaluation of a run: what it is judged by, and the weights it was made with, if they are to be kept."""

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
from clearhead.train.checkpoint import model_tensors
from clearhead.train.parallel import Group, part_like


@dataclass(frozen=True)
class Validation:
    """What a model is judged by while it learns: the loss of batches, and perhaps what it makes of examples."""

    batches: Batches
    run: Run  # the model as it learns, with its tokenizers

    def scores(self, machine: Machine, group: Group) -> dict[str, float]:
        """What `train.best_by` names, if it is not the loss; every process asks, as they may share one model."""
        config = self.run.recipe.train
        if config.best_by == "loss":
            return {}
        with machine.autocast(), torch.compiler.set_stance("force_eager"):
            score = evaluate(self.run, "valid", config.best_examples, beam=1, quiet=True)[config.best_by]
        return {config.best_by: group.sum(score if group.first else 0.0)[0]}


class Best:
    """The best evaluation so far, and how many came after it."""

    def __init__(self, config: TrainConfig) -> None:
        self.by, self.keeps = config.best_by, config.keep == "best"
        self.value = math.inf if self.by == "loss" else -math.inf
        self.waited = 0  # evaluations since then
        self.weights: Tensors = {}  # it was made with, if they are kept; of shared ones, this process's part

    def judge(self, value: float, model: nn.Module) -> bool:
        """Whether an evaluation is better than all before it; `model` has the weights that were evaluated."""
        better = value < self.value if self.by == "loss" else value > self.value
        self.waited = 0 if better else self.waited + 1
        if better:
            self.value = value
        if better and self.keeps:
            self.weights = {name: t.clone() for name, t in model_tensors(model).items()}
        return better

    def facts(self) -> dict[str, float]:
        """All but the weights, for a checkpoint."""
        return {"best": self.value, "waited": self.waited}

    def restore(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], model: nn.Module) -> None:
        """Remember what a checkpoint says."""
        self.value, self.waited = facts["best"], facts["waited"]
        own = model_tensors(model)
        self.weights = {name: part_like(tensor, own[name]) for name, tensor in tensors.items()}
