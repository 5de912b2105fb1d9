"""A dry run shows data, a batch, model, memory and time, and writes nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead import cli
from clearhead.config import Recipe, UserError
from clearhead.recipes import write_recipe
from clearhead.train.cost import readable
from clearhead.train.loop import train_step
from clearhead.train.watching import dry_run as module
from clearhead.train.watching.dry_run import dry_run
from command_line import Terminal
from watched_runs import TASK_OF_CORPUS


@pytest.mark.parametrize("corpus", TASK_OF_CORPUS)
def test_a_dry_run_shows_all_and_writes_nothing(
    corpus: str, recipe: Recipe, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    task, shape = TASK_OF_CORPUS[corpus]
    data = replace(recipe.data, corpus="stories" if corpus == "masked" else corpus, task=task, size=60, max_length=64)
    if task in ("chat", "classification"):
        data = replace(data, max_length=256, batch_tokens=1024)
    model = replace(shape, d_model=16, d_ff=32, layers=1, heads=2)
    dry_run(replace(recipe, data=data, model=model, train=replace(recipe.train, optimiser="muon")))
    shown = capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    for words in (
        "train",
        "valid",
        "first batch",
        "to learn",
        "parameters",
        "memory",
        "Muon's one average",
        "first step: loss",
        "12 steps ×",
    ):
        assert words in shown
    if task == "translation":
        first = next(line for line in shown.splitlines() if "to learn  " in line)
        assert "│" in first
        assert "<end>" in first
    if task in ("masked", "chat"):
        assert "·│·" in shown


@pytest.mark.parametrize(("long", "steps"), [(0.0, 1), (1e9, 3)])
def test_one_long_step_says_enough_and_a_bar_shows_that_it_is_taken(
    recipe: Recipe, long: float, steps: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[float] = []

    def counted(*given: Any) -> None:
        taken.append(given[2])
        train_step(*given)

    monkeypatch.setattr(module, "LONG_STEP", long)
    monkeypatch.setattr(module, "train_step", counted)
    model = replace(recipe.model, d_model=16, d_ff=32, layers=1, heads=2)
    with Terminal() as terminal:
        dry_run(replace(recipe, model=model))
    assert len(taken) == steps
    assert "trying a few steps" in terminal.getvalue()
    shown = capsys.readouterr().out
    assert ("first step: loss" in shown, "later ones are faster" in shown) == (True, steps == 1)


def test_the_memory_is_that_of_the_trained_parameters(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    model = replace(recipe.model, d_model=16, d_ff=32, layers=1, heads=2)
    dry_run(replace(recipe, model=model, train=replace(recipe.train, lora=2, average="none")))
    trained = 3 * 2 * 2 * 2 * 16  # three attentions, the adapters of two matrices, A and B of rank 2
    shown = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if "gradients" in line]
    assert [size.strip() for _, size in shown] == [readable(4 * trained, "B")]


def test_the_memory_is_that_of_both_passes_of_r_drop(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for weight in (0.0, 5.0):
        dry_run(replace(recipe, train=replace(recipe.train, r_drop=weight)))
        shown.append(capsys.readouterr().out)
    rows = [int(re.search(r"a step of (\d+) ×", text)[1]) for text in shown]
    assert rows[1] == 2 * rows[0]
    assert ["each row twice (train.r_drop)" in text for text in shown] == [False, True]


def test_what_was_dropped_is_shown(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(replace(recipe, data=replace(recipe.data, max_length=24)))
    assert "examples of more than data.max_length = 24 tokens dropped" in capsys.readouterr().out


def test_examples_that_are_copies_are_explained(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(replace(recipe, data=replace(recipe.data, bpe_dropout=0.1)))
    assert "each pair 8 times, in different tokens (data.bpe_dropout = 0.1)" in capsys.readouterr().out


def test_the_command_line_sees_the_same(
    recipe: Recipe, watched: Path, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_recipe(recipe, tmp_path / "tiny.toml")

    def clearhead(*words: str) -> str:
        cli.app(words, exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    assert "No run was written" in clearhead("train", "tiny.toml", "--dry-run")
    assert "learning rate, cosine" in clearhead("train", "tiny.toml", "--plot-schedule")
    assert "validation" in clearhead("plot", str(watched))
    clearhead("plot", str(watched), "--out", "curves.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.svg", "tiny.toml"]
    with pytest.raises(UserError, match=r"--out curves.png is for the picture of --plot-schedule"):
        clearhead("train", "tiny.toml", "--out", "curves.png")
    with pytest.raises(UserError, match="no run was given"):
        clearhead("plot")
