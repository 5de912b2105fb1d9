"""The loop: one page. Schedules are functions of the step, the data order is counting, so a run can stop anywhere."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from clearhead.config import Recipe, TrainConfig, UserError
from clearhead.text.batches import Batch
from clearhead.text.loader import Batches, prefetch
from clearhead.train.checkpoint import (
    Checkpoint,
    model_tensors,
    optimiser_tensors,
    random_tensors,
    restore_model,
    restore_optimisers,
    restore_random,
    save_checkpoint,
)
from clearhead.train.device import Machine
from clearhead.train.log import Log
from clearhead.train.loss import Objective
from clearhead.train.optimiser import set_learning_rate
from clearhead.train.prepare import endless
from clearhead.train.schedule import learning_rate

BAD_STEPS = 5  # losses in a row that are no numbers, before the run gives up


@dataclass
class Learner:
    """Everything that changes while a model learns."""

    objective: Objective
    optimisers: list[Optimizer]
    machine: Machine
    step: int = 0
    bad_steps: int = 0  # in a row
    best: float = math.inf  # lowest validation loss so far
    waited: int = 0  # evaluations since then

    @property
    def model(self) -> nn.Module:
        """The model that learns."""
        return self.objective.model

    def save(self, run: Path) -> None:
        """Write all of it down."""
        tensors = {
            "model": model_tensors(self.model),
            "optimiser": optimiser_tensors(self.model, self.optimisers),
            "random": random_tensors(),
        }
        facts = {name: getattr(self, name) for name in ("best", "waited", "bad_steps")}
        save_checkpoint(run, Checkpoint(self.step, tensors, facts))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        restore_model(self.model, checkpoint.tensors["model"])
        restore_optimisers(self.model, self.optimisers, checkpoint.tensors["optimiser"])
        restore_random(checkpoint.tensors["random"])
        self.step = checkpoint.step
        self.best, self.waited = checkpoint.facts["best"], checkpoint.facts["waited"]
        self.bad_steps = checkpoint.facts["bad_steps"]


def learn(learner: Learner, recipe: Recipe, train: list[Batches], valid: Batches, run: Path, log: Log) -> None:
    """Take the steps that are left; evaluate and save every so often, and when asked to stop."""
    config, machine = recipe.train, learner.machine
    lanes = [prefetch(endless(batches, learner.step), machine.device) for batches in train]
    with stop_requests() as stop:
        while learner.step < config.steps and not stop:
            rate = learning_rate(config, recipe.model.d_model, learner.step + 1, config.steps)
            take_step(learner, [next(lane) for lane in lanes], rate, config, log)
            if learner.step % (config.evaluate_every or config.steps) == 0 or learner.step == config.steps:
                evaluate(learner, valid, log)
                learner.save(run)
                if config.patience and learner.waited >= config.patience:
                    log.say(f"no better for {learner.waited} evaluations: stopped early")
                    return
    if stop:
        learner.save(run)
        log.say(f"stopped after step {learner.step:,}; --resume goes on from there")


def take_step(learner: Learner, batches: list[Batch], rate: float, config: TrainConfig, log: Log) -> None:
    """One optimiser step: the gradient of sum / tokens over all micro-batches, never a mean of means."""
    tokens = sum(batch.tokens for batch in batches)
    learner.objective.train()
    total = 0.0
    for batch in batches:
        with learner.machine.autocast():
            loss = learner.objective(batch) / max(1, tokens)
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(learner.model.parameters(), config.clip or math.inf).item()
    learner.step += 1
    if math.isfinite(norm) and math.isfinite(total):
        set_learning_rate(learner.optimisers, rate)
        for optimiser in learner.optimisers:
            optimiser.step()
        learner.bad_steps = 0
        log.step(learner.step, total, rate, norm, tokens)
    else:
        learner.bad_steps += 1
        log.say(f"step {learner.step:,}: loss {total}, gradient {norm}: skipped")
    for optimiser in learner.optimisers:
        optimiser.zero_grad()
    if learner.bad_steps >= BAD_STEPS:
        raise UserError(
            f"the loss was no number {BAD_STEPS} times in a row, last at step {learner.step:,}; "
            f"lower train.learning_rate = {config.learning_rate}, or lengthen train.warmup = {config.warmup}"
        )


@torch.no_grad()
def evaluate(learner: Learner, valid: Batches, log: Log) -> float:
    """The validation loss of each target, without dropout and smoothing."""
    learner.objective.eval()
    total, tokens = 0.0, 0
    for batch in prefetch(valid.epoch(0), learner.machine.device):
        with learner.machine.autocast():
            total += learner.objective(batch).item()
        tokens += batch.tokens
    loss = total / tokens
    better = loss < learner.best
    learner.best, learner.waited = min(loss, learner.best), 0 if better else learner.waited + 1
    log.record("valid", learner.step, loss=loss)
    note = " (best so far)" if better else ""
    log.say(f"step {learner.step:,}: validation loss {loss:.4f}, perplexity {math.exp(min(loss, 20)):,.2f}{note}")
    return loss


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """A list that is empty until somebody asks to stop (Ctrl-C, SIGTERM): the step under way is finished first."""
    asked: list[int] = []
    before = {
        kind: signal.signal(kind, lambda number, _: asked.append(number)) for kind in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
