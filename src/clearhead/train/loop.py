"""The loop: one page. Schedules are functions of the step, the data order is counting, so a run can stop anywhere."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from clearhead.config import Recipe, TrainConfig, UserError
from clearhead.data.batches import Batch
from clearhead.data.loader import Batches, prefetch
from clearhead.device import Machine
from clearhead.runs import Tensors
from clearhead.train.average import Average
from clearhead.train.best import Best, Validation
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
from clearhead.train.loss import Objective
from clearhead.train.optimiser import set_learning_rate
from clearhead.train.parallel import Group, gradient_exchange, whole, whole_weights
from clearhead.train.prepare import endless
from clearhead.train.schedule import learning_rate
from clearhead.train.watching.log import Log
from clearhead.train.watching.snapshots import snapshot

BAD_STEPS = 5  # losses in a row that are no numbers, before the run gives up


@dataclass
class Learner:
    """Everything that changes while a model learns."""

    objective: Objective
    shared: nn.Module  # the objective, as one of several processes is to call it
    optimisers: list[Optimizer]
    machine: Machine
    group: Group
    average: Average
    best: Best
    asked: list[int] = field(default_factory=list)  # signals to stop that this process got
    stopping: bool = False  # whether any process did
    step: int = 0
    bad_steps: int = 0  # in a row

    @property
    def model(self) -> nn.Module:
        """The model that learns."""
        return self.objective.model

    def weights(self) -> Tensors:
        """For the first process all weights; for the others none, but they must ask, too."""
        return self.group.gather(model_tensors(self.model))

    def save(self, run: Path) -> None:
        """Write all of it down."""
        tensors = {
            "model": self.weights(),
            "optimiser": self.group.gather(optimiser_tensors(self.model, self.optimisers)),
            "random": random_tensors(self.group),
        }
        if self.average.kept:
            tensors["average"] = self.group.gather(self.average.tensors())
        if self.best.weights:
            tensors["best"] = self.group.gather(self.best.weights)
        if self.group.first:
            save_checkpoint(run, Checkpoint(self.step, tensors, {**self.best.facts(), "bad_steps": self.bad_steps}))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        restore_model(self.model, checkpoint.tensors["model"])
        restore_optimisers(self.model, self.optimisers, checkpoint.tensors["optimiser"])
        self.average.restore(checkpoint.tensors.get("average", {}), self.model)
        seed = self.objective.train_config.seed
        restore_random(checkpoint.tensors["random"], self.group, seed, checkpoint.step)
        self.step = checkpoint.step
        self.best.restore(checkpoint.facts, checkpoint.tensors.get("best", {}), self.model)
        self.bad_steps = checkpoint.facts["bad_steps"]


def learn(learner: Learner, recipe: Recipe, train: list[Batches], valid: Validation, run: Path, log: Log) -> None:
    """Take the steps that are left; evaluate and save every so often, and when asked to stop."""
    config, machine = recipe.train, learner.machine
    snapshot(learner.weights, learner.step, config, run)
    lanes = [prefetch(endless(batches, learner.step), machine.device) for batches in train]
    with stop_requests(learner.asked), memory_advice(recipe):
        while learner.step < config.steps and not learner.stopping:
            rate = learning_rate(config, recipe.model.d_model, learner.step + 1, config.steps)
            take_step(learner, [next(lane) for lane in lanes], rate, config, log)
            snapshot(learner.weights, learner.step, config, run)
            if learner.step % (config.evaluate_every or config.steps) == 0 or learner.step == config.steps:
                evaluate(learner, valid, log)
                with whole_weights(learner.shared):
                    log.look(learner.step, learner.objective.model)
                learner.save(run)
                log.restart_clock()
                if config.patience and learner.best.waited >= config.patience:
                    log.say(f"no better {config.best_by} for {learner.best.waited} evaluations: stopped early")
                    return
    if learner.stopping:
        learner.save(run)
        log.say(f"stopped after step {learner.step:,}; --resume goes on from there")


def take_step(learner: Learner, batches: list[Batch], rate: float, config: TrainConfig, log: Log) -> None:
    """One optimiser step: the gradient of sum / tokens over all micro-batches, never a mean of means.

    Tokens and losses are summed over all processes, and with the losses whether anybody was asked to stop.
    """
    group = learner.group
    tokens = int(group.sum(sum(batch.tokens for batch in batches))[0])
    learner.shared.train()
    total = 0.0
    for batch in batches:
        with gradient_exchange(learner.shared, last=batch is batches[-1]):
            with learner.machine.autocast():
                loss = learner.shared(batch) / max(1, tokens)
            (loss * group.world).backward()  # the mean over processes, which they exchange, is then the sum
        total += loss.item()
    total, asked = group.sum(total, len(learner.asked))
    learner.stopping = asked > 0
    norm = whole(nn.utils.clip_grad_norm_(learner.model.parameters(), config.clip or math.inf)).item()
    learner.step += 1
    if math.isfinite(norm) and math.isfinite(total):
        set_learning_rate(learner.optimisers, rate)
        for optimiser in learner.optimisers:
            optimiser.step()
        learner.average.after_step(learner.model, learner.step)
        learner.bad_steps = 0
        log.step(learner.step, total, rate, norm, tokens, batches)
    else:
        learner.bad_steps += 1
        log.skipped(learner.step, total, norm)
    for optimiser in learner.optimisers:
        optimiser.zero_grad()
    if learner.bad_steps >= BAD_STEPS:
        raise UserError(
            f"the loss was no number {BAD_STEPS} times in a row, last at step {learner.step:,}; "
            f"lower train.learning_rate = {config.learning_rate}, or lengthen train.warmup = {config.warmup}"
        )


@torch.no_grad()
def evaluate(learner: Learner, valid: Validation, log: Log) -> None:
    """The validation loss of each target, without dropout and smoothing, and the score that the best is chosen by.

    With averaged weights if there are any: the same that are kept, if this is the best evaluation so far.
    """
    learner.shared.eval()
    learner.average.after_evaluation(learner.model)
    total, tokens = 0.0, 0.0
    with learner.average.in_place_of(learner.model):
        with whole_weights(learner.shared):
            for batch in prefetch(learner.group.deal(valid.batches.epoch(0)), learner.machine.device):
                with learner.machine.autocast():
                    total += learner.shared(batch).item()
                tokens += batch.tokens
            found = valid.scores(learner.machine, learner.group)
        total, tokens = learner.group.sum(total, tokens)
        scores = {"loss": total / tokens, **found}
        better = learner.best.judge(scores[learner.best.by], learner.model)
    log.evaluated(learner.step, scores, better)


@contextmanager
def stop_requests(asked: list[int]) -> Iterator[None]:
    """Note in a list that somebody asks to stop (Ctrl-C, SIGTERM): the step under way is finished first."""
    before = {
        kind: signal.signal(kind, lambda number, _: asked.append(number)) for kind in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def memory_advice(recipe: Recipe) -> Iterator[None]:
    """Say what to change when the memory of a GPU is not enough."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        tokens, step_tokens = recipe.data.batch_tokens, recipe.train.step_tokens or recipe.data.batch_tokens
        raise UserError(
            f"the GPU has too little memory for a batch of data.batch_tokens = {tokens}; halve it and keep the size of "
            f"a step: data.batch_tokens={tokens // 2} train.step_tokens={step_tokens}; if that is not enough, add "
            "train.checkpoint_activations=true"
        ) from error
