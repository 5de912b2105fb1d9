"""Training survives or explains: wild settings, too little memory, a log that cannot be written."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead import device
from clearhead.cli import main
from clearhead.config import Recipe, UserError
from clearhead.files import read_metrics
from clearhead.recipes import write_recipe
from clearhead.runs import open_run
from clearhead.terminal.program import program_name
from clearhead.train.run import train
from command_line import Verb
from forked import PROCESSES


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.seed=99999999999999999999", "train.seed = 99999999999999999999: must lie between"),
        ("data.seed=99999999999999999999", "data.seed = 99999999999999999999: must lie between"),
        ("train.learning_rate=1e300", "train.learning_rate = 1e+300: must be above 0, and at most 1e30"),
        ("train.snapshots=1000000000000", "train.snapshots = 1000000000000: must be at most 10,000"),
        ("train.beta1=1", "train.beta1 = 1.0: must be at least 0 and below 1"),
        ("model.d_model=100000000000", "of memory, and"),
    ],
)
def test_wild_settings_get_a_sentence(verb: Verb, recipe: Recipe, tmp_path: Path, setting: str, message: str) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    _, notes, code = verb("train", tmp_path / "tiny.toml", setting, "--run", tmp_path / "run")
    assert (message in notes, code) == (True, 1), notes
    assert not (tmp_path / "run" / "run.toml").exists()


@pytest.mark.parametrize("longest", ["train", "valid"])
def test_too_few_learned_positions_are_noticed_before_the_first_step(
    recipe: Recipe, tmp_path: Path, longest: str
) -> None:
    (tmp_path / "data").mkdir()
    for split in ("train", "valid"):
        rows = ["a red car\tune voiture"] * 200 + ["car " * 40 + "\tvoiture"] * (split == longest)
        (tmp_path / "data" / f"{split}.tsv").write_text("en\tfr\n" + "\n".join(rows))
    data = replace(recipe.data, corpus="", path=str(tmp_path / "data"), source="en", target="fr")
    model = replace(recipe.model, position="learned", max_length=32)
    message = r"model\.max_length = 32 learned positions are too few for sequences of \d+ tokens; raise it, or lower"
    with pytest.raises(UserError, match=message):
        train(replace(recipe, data=data, model=model), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "run.toml").exists()


def test_a_model_that_is_too_large_for_the_memory_is_refused_with_both_numbers(
    recipe: Recipe, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "available_memory", lambda _: 10_000)
    with pytest.raises(UserError, match=r"needs at least 0\.0 GB of memory, and 0\.0 GB are available on cpu"):
        train(recipe, tmp_path / "other", quiet=True)
    with pytest.raises(UserError, match=r"needs at least 0\.0 GB of memory, and 0\.0 GB are available on cpu"):
        open_run(run)


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    assert device.memory_of_container(tmp_path) > 1 << 60
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 300\nactive_file 50\n")
    assert device.memory_of_container(tmp_path) == 450


def test_the_loss_that_is_not_finite_names_the_rate_to_resume_with(recipe: Recipe, tmp_path: Path) -> None:
    wild = replace(
        recipe, train=replace(recipe.train, steps=20, evaluate_every=0, learning_rate=1e30, warmup=0, clip=0.0)
    )
    with pytest.raises(UserError, match=r"--resume: train\.learning_rate=3\.3e\+29"):
        train(wild, tmp_path, quiet=True)
    train(replace(recipe, train=replace(wild.train, learning_rate=1e-3)), tmp_path, resume=True, quiet=True)


# --- the log, and the last line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stderr", ["full", "closed", "pipe"])
def test_training_goes_on_without_its_log(recipe: Recipe, tmp_path: Path, stderr: str) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    run = tmp_path / "run"
    process = PROCESSES.Process(target=train_with, args=(stderr, tmp_path / "tiny.toml", run))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert [row["step"] for row in read_metrics(run) if row["kind"] == "train"] == [1, 2, 3, 4]


def train_with(stderr: str, recipe: Path, run: Path) -> None:
    """Train by the command line, as the only thing that this process does, with a stderr that cannot be written."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(os.open("/dev/full", os.O_WRONLY) if stderr == "full" else writer, 2)
    if stderr == "closed":  # as Python starts then
        os.close(2)
        sys.stderr = sys.__stderr__ = None  # type: ignore[misc]
    sys.argv = ["clearhead", "train", str(recipe), "--run", str(run)]
    main()


def test_other_programs_on_the_cores_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(device, "busy_cores", lambda _: 2.2)
    assert "1.8 of 4 are free" in device.busy_cores_warning()
    assert "OMP_NUM_THREADS=1 " in device.busy_cores_warning()
    monkeypatch.setattr(device, "busy_cores", lambda _: 0.1)
    assert device.busy_cores_warning() == ""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(device, "busy_cores", lambda _: 4.0)
    assert device.busy_cores_warning() == ""


def test_busy_cores_are_measured() -> None:
    assert 0 <= device.busy_cores(0.05) <= (os.cpu_count() or 1)


def test_the_last_line_says_where_the_run_is_and_what_to_type_next(verb: Verb, recipe: Recipe, tmp_path: Path) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    _, notes, code = verb("train", tmp_path / "tiny.toml", "--run", tmp_path / "my run")
    assert code == 0
    folder = f"{tmp_path}/my run"
    assert notes.splitlines()[-1] == f"the run is in {folder}; next: {program_name()} translate '{folder}' \"a text\""
