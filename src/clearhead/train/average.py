"""Averages of weights over the steps of a run: less noisy than the weights of any single step, and usually better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.runs import Tensors
from clearhead.train.checkpoint import model_tensors, restore_model
from clearhead.train.parallel import shard_like


class WeightAverage:
    """A moving average of the weights ("ema"), or the mean of those of the last evaluations ("last", the paper's)."""

    def __init__(self, config: TrainConfig) -> None:
        self.kind = config.average
        self.decay = config.ema
        self.last = config.average_last
        self.saved: list[Tensors] = []  # "ema": the moving average; "last": the weights of the last evaluations

    def decay_at(self, step: int) -> float:
        """The decay of the moving average; early in a run it decays faster, to forget the initial weights."""
        return min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def after_step(self, model: nn.Module, weight: float | Tensor) -> None:
        """Move the moving average towards the model's weights, by this part of the difference."""
        if self.kind != "ema":
            return
        weights = model_tensors(model)
        if not self.saved:
            self.saved = [copy_of(weights)]
            return
        for name, average in self.saved[0].items():
            average.lerp_(weights[name], weight)

    @torch.no_grad()
    def after_evaluation(self, model: nn.Module) -> None:
        """Save the weights of this evaluation, and drop the oldest."""
        if self.kind == "last":
            self.saved = [*self.saved, copy_of(model_tensors(model))][-self.last :]

    def weights(self, model: nn.Module) -> Tensors:
        """The averaged weights; the model's own if nothing is averaged."""
        if not self.saved:
            return model_tensors(model)
        return {name: torch.stack([weights[name] for weights in self.saved]).mean(0) for name in self.saved[0]}

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Give the model the averaged weights inside the block, and its own afterwards."""
        if not self.saved:
            yield
            return
        own = copy_of(model_tensors(model))
        restore_model(model, self.weights(model))
        try:
            yield
        finally:
            restore_model(model, own)

    def tensors(self) -> Tensors:
        """What a checkpoint must hold."""
        return {f"{number}/{name}": t for number, weights in enumerate(self.saved) for name, t in weights.items()}

    def restore(self, tensors: Mapping[str, Tensor], model: nn.Module) -> None:
        """Continue from what a checkpoint holds."""
        own = model_tensors(model)
        count = len(tensors) // len(own)
        self.saved = [{name: shard_like(tensors[f"{n}/{name}"], t) for name, t in own.items()} for n in range(count)]


def copy_of(tensors: Mapping[str, Tensor]) -> Tensors:
    """A copy that does not change when the model's weights do."""
    return {name: t.clone() for name, t in tensors.items()}
