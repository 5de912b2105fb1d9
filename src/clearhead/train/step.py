"""One optimiser step: gradients, clipping, update. On one GPU, fast/train/step.py takes it without waiting."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.data.batches import Batch
from clearhead.train.optimiser import set_learning_rate
from clearhead.train.parallel import full_tensor, gradient_sync
from clearhead.train.state import TrainState


class StepInfo(NamedTuple):
    """What the host knows of a step."""

    step: int
    rate: float
    targets: int  # over all micro-batches and processes
    batches: list[Batch]


class StepResult(NamedTuple):
    """A step whose loss and gradient norm have been read."""

    info: StepInfo
    loss: float
    norm: float

    @property
    def applied(self) -> bool:
        """Whether the weights were updated: not if the loss or its gradient was not finite."""
        return math.isfinite(self.loss) and math.isfinite(self.norm)


class Step(Protocol):
    """A way to take optimiser steps."""

    def __call__(self, state: TrainState, info: StepInfo) -> list[StepResult]:
        """Take a step; return the results that are known by now, in order."""

    def finish(self) -> list[StepResult]:
        """Wait for all steps; return the results that were not returned yet."""


def backpropagate(state: TrainState, batches: Iterable[Batch], targets: int | Tensor) -> Tensor:
    """Add up the gradients of (sum of losses) / targets; return the loss of this process.

    A mean of the means of micro-batches would weight targets differently.
    """
    state.wrapped.train()
    batches = list(batches)
    total = torch.zeros((), dtype=torch.float64, device=state.machine.device)
    for batch in batches:
        with gradient_sync(state.wrapped, last=batch is batches[-1]):
            with state.machine.autocast(), state.machine.fastest_attention():
                loss = state.wrapped(batch) / targets
            (loss * state.group.world).backward()  # DDP and FSDP average over processes: this makes it a sum
        total += loss.detach()
    return total


def compile_for_all_sizes(state: TrainState, batch: Batch) -> None:
    """Let compiled blocks see a part of the first batch in which rows, source and target differ in size.

    Sizes that are equal when a block is compiled are taken for the same one, and batches in which they differ would be
    compiled again: in batches of sentence pairs, source and target are often equally long.
    """
    source = batch.inputs.get("source")
    if not state.machine.compiled or source is None:
        return
    rows, width = source.shape
    target = batch.targets.size(1) - (batch.targets.size(1) == width)
    while rows * state.objective.train_config.passes in (width, target):  # the rows that blocks see
        rows -= 1
    if min(rows, target) < 2 or (rows, target) == batch.targets.shape:
        return
    inputs = {name: t[:rows, : target if name == "target" else width].clone() for name, t in batch.inputs.items()}
    devices = [state.machine.device] if state.machine.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        backpropagate(state, [Batch(inputs, batch.targets[:rows, :target])], 1)
    for optimiser in state.optimisers:
        optimiser.zero_grad()


class PlainStep:
    """A step whose loss and gradient norm are read at once; the update is skipped if either is not finite."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config

    def __call__(self, state: TrainState, info: StepInfo) -> list[StepResult]:
        """Take a step and return its result; stop signals are exchanged with the losses."""
        total = backpropagate(state, info.batches, max(1, info.targets)).item()
        total, signals = state.group.sum(total, len(state.stop_signals))
        state.stopping = signals > 0
        norm = full_tensor(nn.utils.clip_grad_norm_(state.model.parameters(), self.config.clip or math.inf)).item()
        result = StepResult(info, total, norm)
        if result.applied:
            set_learning_rate(state.optimisers, info.rate)
            for optimiser in state.optimisers:
                optimiser.step()
            state.average.after_step(state.model, 1 - state.average.decay_at(info.step))
        for optimiser in state.optimisers:
            optimiser.zero_grad()
        return [result]

    def finish(self) -> list[StepResult]:
        """Return nothing: each step has returned its result at once."""
        return []
