"""Everything that changes during training: weights, optimisers, averages, the number of steps; saved and restored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn
from torch.optim import Optimizer

from clearhead.device import Machine
from clearhead.runs import Tensors
from clearhead.train.average import WeightAverage
from clearhead.train.best import BestEvaluation
from clearhead.train.checkpoint import (
    Checkpoint,
    CheckpointWriter,
    model_tensors,
    optimiser_tensors,
    random_tensors,
    restore_model,
    restore_optimisers,
    restore_random,
)
from clearhead.train.folder import require_own_folder
from clearhead.train.loss import Objective
from clearhead.train.parallel import Group

if TYPE_CHECKING:
    from clearhead.train.step import Step


@dataclass
class TrainState:
    """Everything that changes during training, and what it is trained with."""

    objective: Objective
    wrapped: nn.Module  # the objective as this process must call it: wrapped by DDP, sharded by FSDP, or itself
    optimisers: list[Optimizer]
    machine: Machine
    group: Group
    average: WeightAverage
    best: BestEvaluation
    origin: str = ""  # which weights were taken from `train.init`
    stop_signals: list[int] = field(default_factory=list)  # that this process received
    stopping: bool = False  # whether any process received one
    step: int = 0  # steps taken so far
    saved_step: int = 0  # of the newest checkpoint
    bad_steps: int = 0  # in a row
    take_step: Step | None = None  # chosen with the first step
    writer: CheckpointWriter = field(default_factory=CheckpointWriter)

    @property
    def model(self) -> nn.Module:
        """The model that is trained."""
        return self.objective.model

    def weights(self) -> Tensors:
        """All weights for the main process, nothing for the others; every process must call it."""
        return self.group.gather(model_tensors(self.model))

    def save(self, run: Path, loss: float | None = None) -> bool:
        """Write a checkpoint; if the weights are broken, write nothing and return False.

        They are broken if one of them is not finite, or if the validation loss is not; without validation, if the loss
        of the last step is not. Every process must call it.
        """
        weights = self.weights()
        broken = sum(not t.isfinite().all() for t in weights.values())
        if self.group.sum(broken)[0] or (self.bad_steps if loss is None else not math.isfinite(loss)):
            return False
        tensors = {
            "model": weights,
            "optimiser": self.group.gather(optimiser_tensors(self.model, self.optimisers)),
            "random": random_tensors(self.group),
        }
        if self.average.saved:
            tensors["average"] = self.group.gather(self.average.tensors())
        if self.best.weights:
            tensors["best"] = self.group.gather(self.best.weights)
        if self.group.is_main:
            require_own_folder(run)
            facts = {**self.best.facts(), "bad_steps": self.bad_steps}
            self.writer.write(run, Checkpoint(self.step, tensors, facts))
        self.saved_step = self.step
        return True

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        restore_model(self.model, checkpoint.tensors["model"])
        restore_optimisers(self.model, self.optimisers, checkpoint.tensors["optimiser"])
        self.average.restore(checkpoint.tensors.get("average", {}), self.model)
        seed = self.objective.train_config.seed
        restore_random(checkpoint.tensors["random"], self.group, seed, checkpoint.step)
        self.step = checkpoint.step
        self.saved_step = checkpoint.step
        self.best.restore(checkpoint.facts, checkpoint.tensors.get("best", {}), self.model)
        self.bad_steps = checkpoint.facts["bad_steps"]
