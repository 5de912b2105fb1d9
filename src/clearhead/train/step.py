"""One optimiser step: gradients, clipping, update. On one GPU nothing of it waits for the host.

`HostStep` reads the loss and the gradient norm after every step, and skips the update if either is not finite: for a
CPU and for several processes. `DeviceStep` makes the same decision on the GPU, and records the step as a CUDA graph: a
small model has a thousand kernels per step, which Python launches in 40 ms and an H200 computes in 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from clearhead.config import TrainConfig
from clearhead.data.batches import Batch
from clearhead.fast.gpu.graphs import GraphMemory, record
from clearhead.fast.kernels import usable
from clearhead.fast.kernels.attention import preferred_kernels
from clearhead.train.optimiser import set_learning_rate
from clearhead.train.parallel import full_tensor, gradient_sync

if TYPE_CHECKING:
    from clearhead.train.loop import TrainState

READ_EVERY = 25  # steps between two readings of losses from the GPU
GRAPHS = 160  # shapes at most that are recorded; batches of more shapes are computed without a graph


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


def choose_step(state: TrainState, config: TrainConfig) -> Step:
    """The step for this device and number of processes."""
    alone = state.group.world == 1
    return DeviceStep(state, config) if alone and state.machine.device.type == "cuda" else HostStep(config)


def backpropagate(state: TrainState, batches: Iterable[Batch], targets: int | Tensor) -> Tensor:
    """Add up the gradients of (sum of losses) / targets; return the loss of this process.

    A mean of the means of micro-batches would weight targets differently.
    """
    state.wrapped.train()
    batches = list(batches)
    total = torch.zeros((), dtype=torch.float64, device=state.machine.device)
    for batch in batches:
        with gradient_sync(state.wrapped, last=batch is batches[-1]):
            with state.machine.autocast(), preferred_kernels(state.machine.device):
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


class HostStep:
    """A step that the host waits for."""

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
        """Nothing is left: every result was returned at once."""
        return []


@dataclass
class RecordedStep:
    """A step for batches of certain shapes, as a CUDA graph that reads them from fixed memory."""

    batches: list[Batch]
    graph: torch.cuda.CUDAGraph

    def replay(self, batches: list[Batch]) -> None:
        """Compute the step for other batches of the same shapes."""
        for own, batch in zip(self.batches, batches, strict=True):
            own.copy_from(batch)
        self.graph.replay()


def cast_together(state: TrainState) -> Callable[[], None]:
    """Let norms train in bfloat16, and linear layers with copies of their weights; return what updates all copies."""
    parameter = next(state.model.parameters())
    if state.machine.precision != torch.bfloat16 or state.machine.compiled or not usable(parameter):
        return no_cast
    from clearhead.fast.train.half_linear import use_half_linears
    from clearhead.fast.train.half_norm import use_half_norms  # needs Triton

    use_half_norms(state.model, last=state.objective.model.config.head != "embedding")  # vectors stay in float32
    return use_half_linears(state.model)


def no_cast() -> None:
    """Autocast casts each weight where it is used."""


class DeviceStep:
    """A step on one GPU without waiting; results are read every READ_EVERY steps.

    A shape is computed kernel by kernel when it first comes, recorded when it comes again, and replayed from then on.
    All graphs share their memory, so what must outlive a step is written to tensors outside of it.
    """

    def __init__(self, state: TrainState, config: TrainConfig) -> None:
        device = state.machine.device
        self.config = config
        self.results = torch.zeros(READ_EVERY, 2, dtype=torch.float64, device=device)  # loss and gradient norm
        self.numbers = torch.zeros(3, dtype=torch.float64, device=device)  # targets, weight of the average, slot
        self.waiting: list[StepInfo] = []  # steps whose results were not read yet
        self.seen: dict[tuple[object, ...], RecordedStep | None] = {}
        self.memory = GraphMemory()
        self.recordable = not config.checkpoint_activations  # which saves and restores the random state on the host
        self.cast_weights = cast_together(state) if self.recordable else no_cast

    def __call__(self, state: TrainState, info: StepInfo) -> list[StepResult]:
        """Take a step; return results if READ_EVERY of them are waiting."""
        set_learning_rate(state.optimisers, info.rate)
        weight = 1 - state.average.decay_at(info.step)
        self.numbers.copy_(torch.tensor([max(1, info.targets), weight, len(self.waiting)], dtype=torch.float64))
        self.waiting.append(info)
        self.take(state, [batch.rounded() for batch in info.batches])
        state.stopping = len(state.stop_signals) > 0
        return self.finish() if len(self.waiting) == READ_EVERY else []

    def take(self, state: TrainState, batches: list[Batch]) -> None:
        """Compute the step: kernel by kernel, or by replaying its graph."""
        shapes = tuple(batch.shapes() for batch in batches)
        recorded = self.seen.get(shapes)
        if recorded is None and shapes in self.seen and self.recordable:
            recorded = self.seen[shapes] = self.record(state, batches)
        if recorded is not None:
            recorded.replay(batches)
            return
        self.compute(state, batches)
        if len(self.seen) < GRAPHS:
            self.seen[shapes] = None

    def record(self, state: TrainState, batches: list[Batch]) -> RecordedStep:
        """Record the step for batches of these shapes; recording computes nothing."""
        own = [batch.clone() for batch in batches]
        graph, _ = record(lambda: self.compute(state, own), self.memory)
        return RecordedStep(own, graph)

    def compute(self, state: TrainState, batches: list[Batch]) -> None:
        """The step itself. Everything that changes from step to step is read from GPU memory."""
        targets, weight, slot = self.numbers
        self.cast_weights()
        total = backpropagate(state, batches, targets.float())
        norm = nn.utils.clip_grad_norm_(state.model.parameters(), self.config.clip or math.inf)
        applied = total.isfinite() & norm.isfinite()
        for optimiser in state.optimisers:
            optimiser.found_inf = (~applied).float()  # type: ignore[attr-defined]  # no update if this is 1
            optimiser.step()
        state.average.after_step(state.model, weight.float() * applied)
        for optimiser in state.optimisers:
            optimiser.zero_grad()
        self.results.index_copy_(0, slot.long()[None], torch.stack([total, norm.double()])[None])

    def finish(self) -> list[StepResult]:
        """Read the results of the steps that are waiting."""
        numbers = self.results[: len(self.waiting)].tolist()
        found = [StepResult(info, loss, norm) for info, (loss, norm) in zip(self.waiting, numbers, strict=True)]
        self.waiting = []
        return found
