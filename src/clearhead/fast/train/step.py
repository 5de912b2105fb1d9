"""An optimiser step on one GPU, of which nothing waits for the host, recorded as a CUDA graph.

A small model has a thousand kernels per step, which Python launches in 40 ms and an H200 computes in 5. `PlainStep`
reads the loss and the gradient norm after every step, to skip the update if either is not finite; here the GPU decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from clearhead.config import TrainConfig
from clearhead.data.batches import Batch
from clearhead.fast.gpu.graphs import GraphMemory, record
from clearhead.fast.kernels import usable
from clearhead.fast.train.batches import overwrite, rounded, shapes_of
from clearhead.train.optimiser import set_learning_rate
from clearhead.train.state import TrainState
from clearhead.train.step import StepInfo, StepResult, backpropagate

READ_EVERY = 25  # steps between two readings of losses from the GPU
MAX_GRAPHS = 160  # shapes that are recorded; batches of more shapes are computed without a graph


@dataclass
class RecordedStep:
    """A step for batches of certain shapes, as a CUDA graph that reads them from fixed memory."""

    batches: list[Batch]
    graph: torch.cuda.CUDAGraph

    def replay(self, batches: list[Batch]) -> None:
        """Compute the step for other batches of the same shapes."""
        for own, batch in zip(self.batches, batches, strict=True):
            overwrite(own, batch)
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


class GraphStep:
    """An optimiser step on one GPU without waiting; results are read every READ_EVERY steps.

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
        self.take(state, [rounded(batch) for batch in info.batches])
        state.stopping = len(state.stop_signals) > 0
        return self.finish() if len(self.waiting) == READ_EVERY else []

    def take(self, state: TrainState, batches: list[Batch]) -> None:
        """Compute the step: kernel by kernel, or by replaying its graph."""
        shapes = tuple(shapes_of(batch) for batch in batches)
        recorded = self.seen.get(shapes)
        if recorded is None and shapes in self.seen and self.recordable:
            recorded = self.seen[shapes] = self.record(state, batches)
        if recorded is not None:
            recorded.replay(batches)
            return
        self.compute(state, batches)
        if len(self.seen) < MAX_GRAPHS:
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
