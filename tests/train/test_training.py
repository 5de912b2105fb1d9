"""Training is exact: split, stopped, resumed or killed, a run learns what it would have learned."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.prepare import batches_from_step
from clearhead.train.run import train
from clearhead.train.state import TrainState
from clearhead.train.step import PlainStep, StepInfo, StepResult

RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.2, attention_dropout=0.1),
    train=TrainConfig(steps=12, evaluate_every=4, warmup=3, step_tokens=1024, device="cpu"),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


def weights_of(run: Path) -> dict[str, Tensor]:
    return load_file(run / "model.safetensors")


def losses_of(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that never stopped."""
    run = tmp_path_factory.mktemp("whole")
    train(recipe, run, quiet=True)
    return run


def assert_same_run(one: Path, other: Path) -> None:
    assert losses_of(one) == losses_of(other)
    first, second = weights_of(one), weights_of(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_same_seed_is_the_same_run(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    train(recipe, tmp_path, quiet=True)
    assert_same_run(tmp_path, whole)
    assert losses_of(tmp_path)[-1] < losses_of(tmp_path)[0]


@pytest.mark.parametrize("at", [1, 5, 8])
def test_resumed_is_never_stopped(recipe: Recipe, whole: Path, tmp_path: Path, at: int, monkeypatch: Any) -> None:
    """Ctrl-C during a step: it is finished and saved; what follows is bit for bit what would have followed."""
    from clearhead.train import loop

    train_step, taken = loop.train_step, []

    def interrupted(*arguments: Any) -> None:
        taken.append(1)
        if len(taken) == at:
            os.kill(os.getpid(), signal.SIGINT)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", interrupted)
    train(recipe, tmp_path, quiet=True)
    monkeypatch.undo()
    assert len(losses_of(tmp_path)) == at
    torch.manual_seed(time.time_ns() % 1000)
    train(recipe, tmp_path, resume=True, quiet=True)
    assert_same_run(tmp_path, whole)


def test_a_run_is_not_overwritten_or_continued_by_another_recipe(recipe: Recipe, whole: Path) -> None:
    with pytest.raises(UserError, match="already holds a run; --resume continues it"):
        train(recipe, whole, quiet=True)
    other = replace(recipe, train=replace(recipe.train, beta1=0.5))
    with pytest.raises(UserError, match=r"another recipe: train.beta1 = 0.5, not 0.9"):
        train(other, whole, resume=True, quiet=True)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_offered(recipe: Recipe, tmp_path: Path) -> None:
    train(recipe, tmp_path, quiet=True)
    before, last = checkpoint_folders(tmp_path)
    weights = last / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    message = rf"model.safetensors differs from what was written.*continue from {before.name}"
    with pytest.raises(UserError, match=message):
        train(recipe, tmp_path, resume=True, quiet=True)
    weights.write_bytes(content[:100])
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(last)
    (last / "manifest.json").unlink()
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(last)
    assert load_checkpoint(before).step == 8


def test_a_loss_that_is_no_number_stops_with_advice(recipe: Recipe, tmp_path: Path) -> None:
    wild = replace(recipe, train=replace(recipe.train, learning_rate=1e30, warmup=0, clip=0.0))
    with pytest.raises(UserError, match=r"not finite 5 times in a row.*lower train.learning_rate = 1e\+30"):
        train(wild, tmp_path, quiet=True)


def test_broken_weights_are_never_saved(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_weights_after(step: int, value: float) -> None:
        def broken(self: PlainStep, state: TrainState, info: StepInfo) -> list[StepResult]:
            results = take(self, state, info)
            if info.step == step:  # as an update with a learning rate that is too high
                next(state.model.parameters()).data.fill_(value)
            return results

        monkeypatch.setattr(PlainStep, "__call__", broken)

    take = PlainStep.__call__
    every = replace(recipe, train=replace(recipe.train, evaluate_every=2, patience=0))
    for value in (math.nan, 1e38):  # the second is finite, but no loss is
        break_weights_after(5, value)
        run = tmp_path / str(value)
        with pytest.raises(UserError, match=r"not finite 5 times in a row"):
            train(every, run, quiet=True)
        assert [folder.name for folder in checkpoint_folders(run)] == ["step-00000002", "step-00000004"]
        monkeypatch.setattr(PlainStep, "__call__", take)
        train(every, run, resume=True, quiet=True)
        assert all(weight.isfinite().all() for weight in weights_of(run).values())
    break_weights_after(recipe.train.steps, math.nan)
    with pytest.raises(UserError, match=r"not finite after step 12: it is not saved; lower train.learning_rate"):
        train(recipe, tmp_path / "end", quiet=True)
    assert not (tmp_path / "end" / "model.safetensors").exists()


def test_a_run_without_finite_losses_is_not_saved_when_it_is_stopped(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = PlainStep.__call__

    def skipped(self: PlainStep, state: TrainState, info: StepInfo) -> list[StepResult]:
        state.stop_signals.append(signal.SIGINT)  # at each of the steps from 2 on, of which 2 and 3 are bad
        [result] = take(self, state, info)
        state.stopping = info.step > 1
        return [result._replace(loss=math.nan) if info.step in (2, 3) else result]

    monkeypatch.setattr(PlainStep, "__call__", skipped)
    assert train(recipe, tmp_path, quiet=True) == signal.SIGINT
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-00000004"]


def test_patience_ends_a_run_that_learns_nothing(recipe: Recipe, tmp_path: Path) -> None:
    stuck = replace(recipe, train=replace(recipe.train, learning_rate=1e-30, evaluate_every=1, patience=2, steps=50))
    train(stuck, tmp_path, quiet=True)
    assert len(losses_of(tmp_path)) <= 5


def test_frozen_parameters_stay_and_init_takes_over_what_fits(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    settings = replace(recipe.train, steps=2, init=str(whole), freeze="encoder.* *.embedding.*")
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    before, after = weights_of(whole), weights_of(tmp_path)
    for name, weight in before.items():
        frozen = name.startswith("encoder.") or ".embedding." in name
        assert torch.equal(weight, after[name]) == frozen, name
    nonsense = replace(recipe, train=replace(settings, freeze="encodre.*"))
    with pytest.raises(UserError, match=r"no parameter matches 'encodre\.\*'"):
        train(nonsense, tmp_path / "other", quiet=True)


@pytest.mark.parametrize("average", ["ema", "last"])
def test_averaged_runs_resume_exactly_too(recipe: Recipe, tmp_path: Path, average: str) -> None:
    averaged = replace(recipe, train=replace(recipe.train, average=average, average_last=2, ema=0.9))
    once, twice = tmp_path / "once", tmp_path / "twice"
    train(averaged, once, quiet=True)
    train(averaged, twice, quiet=True)
    shutil.rmtree(checkpoint_folders(twice)[-1])  # as if the run had died after step 8
    train(averaged, twice, resume=True, quiet=True)
    assert_same_run(twice, once)
    last = load_checkpoint(checkpoint_folders(once)[-1]).tensors["model"]
    assert any(not torch.equal(last[name], weight) for name, weight in weights_of(once).items())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_adapters_learn_while_the_model_stays(recipe: Recipe, whole: Path, tmp_path: Path, optimiser: Any) -> None:
    settings = replace(recipe.train, steps=3, init=str(whole), lora=2, optimiser=optimiser)
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    before, after = weights_of(whole), weights_of(tmp_path)
    assert before.keys() == after.keys()  # merged: a plain model again
    for name, weight in before.items():
        corrected = name.endswith((".query.weight", ".value.weight"))
        assert torch.equal(weight, after[name]) == (not corrected), name
    with pytest.raises(UserError, match=r"train\.lora = 2 needs train\.average = 'none'"):
        replace(settings, average="ema")


def test_a_task_needs_its_family(recipe: Recipe, tmp_path: Path) -> None:
    wrong = replace(recipe, model=replace(recipe.model, family="decoder-only"))
    with pytest.raises(UserError, match=r"is for model\.family = 'encoder-decoder', not 'decoder-only'"):
        train(wrong, tmp_path, quiet=True)


def test_batches_go_on_from_any_step() -> None:
    class ThreeAnEpoch:
        def steps(self, _: int) -> int:
            return 3

        def epoch(self, epoch: int, start: int) -> Any:
            return iter([(epoch, step) for step in range(start, 3)])

    for begin in range(8):
        stream: Any = batches_from_step(ThreeAnEpoch(), begin)
        assert [next(stream) for _ in range(4)] == [divmod(step, 3) for step in range(begin, begin + 4)]


TASKS = {
    "stories": ("language", ModelConfig(family="decoder-only")),
    "instructions": ("chat", ModelConfig(family="decoder-only")),
    "reviews": ("classification", ModelConfig(family="encoder-only", head="classes", pool="first")),
    "paraphrases": ("similarity", ModelConfig(family="encoder-only", head="embedding")),
    "headlines": ("translation", ModelConfig()),
}


@pytest.mark.parametrize("corpus", [*TASKS, "masked"])
def test_every_task_learns_something(corpus: str, recipe: Recipe, tmp_path: Path) -> None:
    task, model = TASKS.get(corpus, ("masked", ModelConfig(family="encoder-only")))
    data = replace(recipe.data, corpus="stories" if corpus == "masked" else corpus, task=task, max_length=256, size=40)
    shape = replace(model, d_model=16, d_ff=32, layers=1, heads=2)
    settings = replace(recipe.train, steps=40, evaluate_every=0, learning_rate=1e-2, step_tokens=2048)
    train(replace(recipe, data=data, model=shape, train=settings), tmp_path, quiet=True)
    losses = losses_of(tmp_path)
    assert all(math.isfinite(loss) for loss in losses)
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
