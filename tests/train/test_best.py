"""The best evaluation is kept: by loss or by another score, through resumes, averages and several processes."""

from __future__ import annotations

import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.evaluate.scores import evaluate
from clearhead.runs import open_run
from clearhead.train.best import BestEvaluation
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.run import train
from several_processes import Job, together

RECIPE = Recipe(
    name="tiny",
    about="A tiny judge of reviews",
    data=DataConfig(task="classification", corpus="reviews", size=200, batch_tokens=1024, max_length=128),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(family="encoder-only", head="classes", d_model=16, d_ff=32, layers=1, heads=2, dropout=0.2),
    train=TrainConfig(
        steps=12,
        evaluate_every=2,
        warmup=1,
        learning_rate=0.03,
        schedule="constant",  # a shorter run is then the beginning of a longer one
        device="cpu",
        samples=0,
        best_by="accuracy",
        keep="best",
    ),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that never stopped."""
    run = tmp_path_factory.mktemp("whole")
    train(recipe, run, quiet=True)
    return run


def changed(recipe: Recipe, **settings: Any) -> Recipe:
    return replace(recipe, train=replace(recipe.train, **settings))


def evaluations(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "valid"]


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model.safetensors")


def assert_same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def best_of(run: Path) -> dict[str, Any]:
    return max(evaluations(run), key=lambda line: line["accuracy"])  # of equal ones the first


def test_a_better_loss_is_lower_and_every_other_score_higher() -> None:
    model = nn.Linear(1, 1)
    by_loss, by_score = BestEvaluation(TrainConfig()), BestEvaluation(TrainConfig(best_by="bleu"))
    better = [by_loss.update(value, model) for value in (3.0, 2.0, 2.0, math.nan, 1.0)]
    assert better == [True, True, False, False, True]
    assert [by_score.update(value, model) for value in (0.0, 5.0, math.nan, 5.0)] == [True, True, False, False]
    assert (by_loss.waited, by_score.waited) == (0, 2)
    assert not by_loss.weights  # nobody asked for them


def test_a_run_ends_with_the_weights_of_its_best_evaluation(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    """They are those of a run that stops there, and score what was written down."""
    best = best_of(whole)
    assert best["step"] < 12, "the test needs a run that gets worse again"
    train(changed(recipe, steps=best["step"], keep="last"), tmp_path, quiet=True)
    assert_same_weights(weights_of(whole), weights_of(tmp_path))
    assert evaluate(open_run(whole), "valid")["accuracy"] == pytest.approx(best["accuracy"])


def test_the_best_is_that_of_the_run_that_never_stopped(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    shutil.rmtree(checkpoint_folders(run)[-1])  # as if the run had died after step 10
    (run / "model.safetensors").unlink()
    train(recipe, run, resume=True, quiet=True)
    assert evaluations(run) == evaluations(whole)
    assert_same_weights(weights_of(run), weights_of(whole))
    ours, theirs = (load_checkpoint(checkpoint_folders(each)[-1]) for each in (run, whole))
    assert_same_weights(ours.tensors["best"], theirs.tensors["best"])
    assert ours.facts == theirs.facts


def test_patience_waits_for_a_better_score(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    """It stops at the first evaluation that is the second in a row without a better accuracy."""
    values = [line["accuracy"] for line in evaluations(whole)]
    steps, best, waited = [], -math.inf, 0
    for line, value in zip(evaluations(whole), values, strict=True):
        steps.append(line["step"])
        best, waited = max(best, value), 0 if value > best else waited + 1
        if waited == 2:
            break
    assert steps[-1] < 12, "the test needs a run that gets worse again"
    train(changed(recipe, patience=2), tmp_path, quiet=True)
    assert [line["step"] for line in evaluations(tmp_path)] == steps


@pytest.mark.parametrize("average", ["ema", "last"])
def test_averaged_weights_are_judged_and_kept(recipe: Recipe, tmp_path: Path, average: str) -> None:
    train(changed(recipe, average=average, average_last=2, ema=0.5, steps=8), tmp_path, quiet=True)
    assert evaluate(open_run(tmp_path), "valid")["accuracy"] == pytest.approx(best_of(tmp_path)["accuracy"])
    assert evaluations(tmp_path)[-1]["step"] == 8


def test_adapters_are_merged_into_the_best(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    train(changed(recipe, lora=2, init=str(whole), steps=4), tmp_path, quiet=True)
    assert weights_of(tmp_path).keys() == weights_of(whole).keys()
    assert evaluate(open_run(tmp_path), "valid")["accuracy"] == pytest.approx(best_of(tmp_path)["accuracy"])


@pytest.mark.parametrize(
    ("task", "by"),
    [("translation", "accuracy"), ("language", "bleu"), ("similarity", "exact"), ("chat", "correlation")],
)
def test_a_score_that_a_task_does_not_have_is_refused(task: Any, by: Any) -> None:
    with pytest.raises(UserError, match=rf"train\.best_by = '{by}' is not measured for data\.task = '{task}'; choose"):
        Recipe(data=DataConfig(task=task), train=TrainConfig(best_by=by))


TASKS: dict[str, tuple[Any, Any, ModelConfig]] = {
    "phrasebook": ("translation", "bleu", ModelConfig()),
    "instructions": ("chat", "exact", ModelConfig(family="decoder-only")),
    "stories": ("masked", "accuracy", ModelConfig(family="encoder-only")),
    "paraphrases": ("similarity", "correlation", ModelConfig(family="encoder-only", head="embedding")),
}


@pytest.mark.parametrize("corpus", TASKS)
def test_every_task_can_be_judged_by_its_score(corpus: str, recipe: Recipe, tmp_path: Path) -> None:
    task, by, model = TASKS[corpus]
    data = replace(recipe.data, task=task, corpus=corpus, size=60)
    settings = replace(recipe.train, steps=2, best_by=by, best_examples=3)
    shape = replace(model, d_model=16, d_ff=32, layers=1, heads=2)
    train(replace(recipe, data=data, model=shape, train=settings), tmp_path, quiet=True)
    [line] = evaluations(tmp_path)
    expected = evaluate(open_run(tmp_path), "valid", limit=3, beam=1)
    assert line[by] == pytest.approx(expected[by], nan_ok=True)


@pytest.mark.skipif(sys.platform == "win32", reason="gloo and forkserver as they are on Linux and macOS")
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_processes_keep_the_same_best(recipe: Recipe, tmp_path: Path, parallel: str) -> None:
    steady = replace(recipe, model=replace(recipe.model, dropout=0.0))  # each process has its own dropout
    steady = changed(steady, step_tokens=2048, steps=6, learning_rate=0.01, average="ema", ema=0.5)
    train(steady, tmp_path / "alone", quiet=True)
    assert together(2, Job(changed(steady, parallel=parallel), tmp_path / "two")) == [0, 0]
    ours, theirs = evaluations(tmp_path / "two"), evaluations(tmp_path / "alone")
    assert [line["accuracy"] for line in ours] == [line["accuracy"] for line in theirs]
    expected = weights_of(tmp_path / "alone")
    for name, weight in weights_of(tmp_path / "two").items():
        if not name.endswith("key.bias"):  # whose gradient is rounding alone
            torch.testing.assert_close(weight, expected[name], rtol=0, atol=1e-4)


def test_a_run_has_a_card(whole: Path) -> None:
    card, best = (whole / "README.md").read_text(), best_of(whole)
    size = sum(weight.numel() for weight in weights_of(whole).values())
    assert card.startswith("# tiny\n\nA tiny judge of reviews\n")
    assert f"{size:,} parameters" in card
    assert f"12 steps; the weights are those of the best evaluation, by accuracy, after step {best['step']}" in card
    assert f"| validation | loss {best['loss']:.4g}, accuracy {best['accuracy']:.4g} |" in card
    assert 'clearhead classify . "a text"' in card
    assert str(whole) not in card
