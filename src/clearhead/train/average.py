"""Averages of weights: smoother than any single step, and usually better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.runs import Tensors
from clearhead.train.checkpoint import model_tensors, restore_model
from clearhead.train.parallel import part_like


class Average:
    """Remembers weights along the way: as a running average, or those of the last evaluations as in the paper."""

    def __init__(self, config: TrainConfig) -> None:
        self.kind, self.memory, self.last = config.average, config.ema, config.average_last
        self.kept: list[Tensors] = []  # one running average, or the newest few weights

    @torch.no_grad()
    def after_step(self, model: nn.Module, step: int) -> None:
        """Move the running average towards the weights; early on it forgets faster, since it began with noise."""
        if self.kind != "ema":
            return
        weights = model_tensors(model)
        if not self.kept:
            self.kept = [{name: t.clone() for name, t in weights.items()}]
            return
        memory = min(self.memory, (1 + step) / (10 + step))
        for name, average in self.kept[0].items():
            average.lerp_(weights[name], 1 - memory)

    @torch.no_grad()
    def after_evaluation(self, model: nn.Module) -> None:
        """Keep the weights of this evaluation, and forget the oldest."""
        if self.kind == "last":
            self.kept = [*self.kept, {name: t.clone() for name, t in model_tensors(model).items()}][-self.last :]

    def weights(self, model: nn.Module) -> Tensors:
        """The averaged weights; the model's own where there is nothing to average."""
        if not self.kept:
            return model_tensors(model)
        return {name: torch.stack([weights[name] for weights in self.kept]).mean(0) for name in self.kept[0]}

    @contextmanager
    def in_place_of(self, model: nn.Module) -> Iterator[None]:
        """Let the model compute with the averaged weights for a while."""
        if not self.kept:
            yield
            return
        own = {name: t.clone() for name, t in model_tensors(model).items()}
        restore_model(model, self.weights(model))
        try:
            yield
        finally:
            restore_model(model, own)

    def tensors(self) -> Tensors:
        """All that it remembers, for a checkpoint."""
        return {f"{number}/{name}": t for number, weights in enumerate(self.kept) for name, t in weights.items()}

    def restore(self, tensors: Mapping[str, Tensor], model: nn.Module) -> None:
        """Remember what a checkpoint says of this model's weights."""
        own = model_tensors(model)
        count = len(tensors) // len(own)
        self.kept = [{name: part_like(tensors[f"{n}/{name}"], t) for name, t in own.items()} for n in range(count)]
