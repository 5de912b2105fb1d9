"""The training loop, on one page: take a step, evaluate and save every so often, stop when asked to.

The learning rate and the order of the data are functions of the step, so a run can stop after any step and resume.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from clearhead.config import Recipe, TrainConfig, UserError, require
from clearhead.data.batches import Batch
from clearhead.data.loader import Batches, prefetch
from clearhead.device import Machine
from clearhead.evaluate.scores import evaluate
from clearhead.fast.choose import step_for
from clearhead.runs import Run
from clearhead.train.parallel import Group, unsharded
from clearhead.train.prepare import batches_from_step
from clearhead.train.schedule import learning_rate
from clearhead.train.state import TrainState
from clearhead.train.step import PlainStep, StepInfo, StepResult, compile_for_all_sizes
from clearhead.train.stopping import handle_stop_signals
from clearhead.train.watching.card import resume_command
from clearhead.train.watching.log import Log
from clearhead.train.watching.snapshots import write_snapshot

BAD_STEPS = 5  # steps in a row with a loss or gradient that is not finite, before the run gives up


@dataclass(frozen=True)
class Validation:
    """What a model is evaluated on during training: batches for the loss, a run for every other score."""

    batches: Batches
    run: Run  # the model that is being trained, with its tokenizers

    def scores(self, machine: Machine, group: Group) -> dict[str, float]:
        """The score that `train.best_by` names, if it is not the loss; every process must call it."""
        config = self.run.recipe.train
        if config.best_by == "loss":
            return {}
        with machine.autocast(), torch.compiler.set_stance("force_eager"):
            score = evaluate(self.run, "valid", config.best_examples, beam=1, quiet=True)[config.best_by]
        return {config.best_by: group.sum(score if group.is_main else 0.0)[0]}


def training_loop(
    state: TrainState, recipe: Recipe, train: list[Batches], valid: Validation | None, run: Path, log: Log
) -> None:
    """Take the steps that are left; evaluate and save every `train.evaluate_every` steps, and save when stopped."""
    config = recipe.train
    if stopped_early(state, config, log):  # a run that is resumed
        return
    write_snapshot(state.weights, state.step, config, run)
    streams = [prefetch(batches_from_step(batches, state.step), state.machine.device) for batches in train]
    saved = True
    with handle_stop_signals(lambda kind, _: state.stop_signals.append(kind)), out_of_memory_advice(recipe):
        while state.step < config.steps and not (state.stopping and state.bad_steps == 0):
            state.writer.check()
            rate = learning_rate(config, recipe.model.d_model, state.step + 1)
            train_step(state, [next(stream) for stream in streams], rate, config, log)
            write_snapshot(state.weights, state.step, config, run)
            if state.step % (config.evaluate_every or config.steps) == 0 or state.step == config.steps:
                finish_steps(state, config, log)
                loss = validate(state, valid, log)
                with unsharded(state.wrapped):
                    log.show_samples(state.step, state.objective.model)
                saved = state.save(run, loss)
                if not saved:
                    log.say(f"step {state.step:,}: not saved, because the loss or a weight is not finite")
                log.restart_clock()
                if stopped_early(state, config, log):
                    break
        if state.stopping:
            finish_steps(state, config, log)
            saved = state.save(run)
        state.writer.wait()  # a signal must not cut it off, and what follows says that the run is saved
    require(saved, f"the loss or a weight is not finite after step {state.step:,}: it is not saved; {remedy(config)}")
    if state.stopping:
        log.say(f"stopped after step {state.step:,}; continue with: {resume_command(run)}")


def stopped_early(state: TrainState, config: TrainConfig, log: Log) -> bool:
    """Say and return whether the last `train.patience` evaluations were no better than one before."""
    if not config.patience or state.best.waited < config.patience:
        return False
    log.say(f"stopped early: no better {config.best_by} in {state.best.waited} evaluations (train.patience)")
    return True


def train_step(state: TrainState, batches: list[Batch], rate: float, config: TrainConfig, log: Log) -> None:
    """Take one optimiser step and report what is known by now: on a GPU, losses are read some steps later."""
    targets = int(state.group.sum(sum(batch.tokens for batch in batches))[0])
    if state.take_step is None:
        compile_for_all_sizes(state, batches[0])
        state.take_step = step_for(state, config) or PlainStep(config)
    state.step += 1
    try:
        results = state.take_step(state, StepInfo(state.step, rate, targets, batches))
    except Exception as error:
        if not state.stop_signals or isinstance(error, UserError):
            raise
        log.say(f"stopped in step {state.step:,}, which is not saved: the signal has also ended torch's compiler")
        raise SystemExit(128 + state.stop_signals[0]) from error  # Ctrl-C is sent to all programs of a terminal
    report(state, results, config, log)


def finish_steps(state: TrainState, config: TrainConfig, log: Log) -> None:
    """Wait for the steps that were taken, and report them."""
    if state.take_step is not None:
        report(state, state.take_step.finish(), config, log)


def report(state: TrainState, results: list[StepResult], config: TrainConfig, log: Log) -> None:
    """Log steps; give up after BAD_STEPS in a row that could not be applied."""
    for result in results:
        if result.applied:
            state.bad_steps = 0
            log.step(result)
        else:
            state.bad_steps += 1
            log.skipped(result.info.step, result.loss, result.norm)
        if state.bad_steps >= BAD_STEPS:
            raise UserError(
                f"the loss or its gradient was not finite {BAD_STEPS} times in a row, last at step "
                f"{result.info.step:,}; {remedy(config)}{checkpoint_to_remove(state.saved_step, result.info.step)}"
            )


def checkpoint_to_remove(saved: int, step: int) -> str:
    """Advise removing the newest checkpoint if every step after it was skipped: its weights give no finite loss."""
    broken = saved > 0 and step - saved <= BAD_STEPS
    return f"; remove checkpoints/step-{saved:08d} first, since its weights have no finite loss" if broken else ""


def remedy(config: TrainConfig) -> str:
    """What to do about a loss that is not finite."""
    lower = f"train.learning_rate={config.learning_rate / 3:.2g}"
    return (
        f"lower train.learning_rate = {config.learning_rate}, also with --resume: {lower}; "
        f"or raise train.warmup = {config.warmup}"
    )


@torch.no_grad()
def validate(state: TrainState, valid: Validation | None, log: Log) -> float | None:
    """Return the validation loss per target, without dropout and label smoothing; report the score of `train.best_by`.

    Averaged weights are used if there are any: the weights that are kept if this is the best evaluation so far.
    """
    state.wrapped.eval()
    state.average.after_evaluation(state.model)
    if valid is None:
        return None
    total = torch.zeros((), dtype=torch.float64, device=state.machine.device)
    tokens = 0.0
    with state.average.applied_to(state.model):
        with unsharded(state.wrapped):
            for batch in prefetch(state.group.split(valid.batches.epoch(0)), state.machine.device):
                with state.machine.autocast():
                    total += state.wrapped(batch)
                tokens += batch.tokens
            other_scores = valid.scores(state.machine, state.group)
        loss, tokens = state.group.sum(total.item(), tokens)
        scores = {"loss": loss / tokens, **other_scores}
        better = state.best.update(scores[state.best.by], state.model)
    log.evaluated(state.step, scores, better)
    return scores["loss"]


@contextmanager
def out_of_memory_advice(recipe: Recipe) -> Iterator[None]:
    """Turn an out-of-memory error of a GPU into advice on which settings to change."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        tokens = recipe.data.batch_tokens
        step_tokens = recipe.train.step_tokens or tokens
        raise UserError(
            f"the GPU has too little memory for a batch of data.batch_tokens = {tokens}; halve it and keep the size of "
            f"a step: data.batch_tokens={tokens // 2} train.step_tokens={step_tokens}; if that is not enough, add "
            "train.checkpoint_activations=true"
        ) from error
