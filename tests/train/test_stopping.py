"""A training that is stopped, or cannot save: what it says, its exit code, and that no checkpoint is cut off."""

from __future__ import annotations

import os
import signal
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import Recipe, UserError
from clearhead.recipes import write_recipe
from clearhead.train import loop
from clearhead.train.checkpoint import CheckpointWriter, checkpoint_folders
from clearhead.train.run import train
from clearhead.train.state import TrainState
from clearhead.train.step import PlainStep
from clearhead.train.watching.card import resume_command
from command_line import Verb
from run_folders import changed


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_training_saves_and_has_the_exit_code_of_its_signal(
    verb: Verb, recipe: Recipe, tmp_path: Path, kind: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = loop.train_step

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), kind)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", interrupted)
    write_recipe(recipe, tmp_path / "tiny.toml")
    _, notes, found = verb("train", tmp_path / "tiny.toml", "--run", tmp_path / "run")
    assert f"stopped after step 1; continue with: {resume_command(tmp_path / 'run')}" in notes
    assert found == code
    assert checkpoint_folders(tmp_path / "run")[-1].name == "step-00000001"


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, None)])
def test_a_signal_that_also_ends_the_compiler_is_no_error(
    verb: Verb, recipe: Recipe, tmp_path: Path, kind: Any, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is sent to all programs of a terminal, and so to the compilers that the first step calls."""

    def compile_step(*_: object) -> None:
        if kind:
            os.kill(os.getpid(), kind)
        raise RuntimeError("the compiler has ended")

    monkeypatch.setattr(PlainStep, "__call__", compile_step)
    write_recipe(recipe, tmp_path / "tiny.toml")
    if kind is None:
        with pytest.raises(RuntimeError, match="the compiler has ended"):
            verb("train", tmp_path / "tiny.toml", "--run", tmp_path / "run")
    else:
        _, notes, found = verb("train", tmp_path / "tiny.toml", "--run", tmp_path / "run")
        assert ("stopped in step 1, which is not saved" in notes, found) == (True, code)
    assert not (tmp_path / "run").exists()


def test_a_signal_that_is_ignored_stops_no_training(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SIGHUP is by nohup."""
    train_step = loop.train_step

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", interrupted)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert train(changed(recipe, steps=2), tmp_path, quiet=True) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert checkpoint_folders(tmp_path)[-1].name == "step-00000002"


@pytest.mark.parametrize("kind", [signal.SIGTERM, None])
def test_a_training_says_that_it_is_saved_only_if_it_is(
    verb: Verb, recipe: Recipe, tmp_path: Path, kind: signal.Signals | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by a signal, or after its last step."""
    train_step = loop.train_step
    run = tmp_path / "run"

    def cannot_save(*arguments: Any) -> None:
        (run / "checkpoints").write_text("a file, where the folder should be")
        if kind:
            os.kill(os.getpid(), kind)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", cannot_save)
    write_recipe(changed(recipe, steps=10 if kind else 1), tmp_path / "tiny.toml")
    _, notes, code = verb("train", tmp_path / "tiny.toml", "--run", run)
    assert ("cannot save the checkpoint of step 1" in notes, code) == (True, 1)
    assert "stopped after" not in notes
    assert "the run is in" not in notes
    assert not (run / "model.safetensors").exists()


def test_a_checkpoint_that_cannot_be_saved_ends_the_training_before_the_next_one(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be hours until the next evaluation."""
    train_step = loop.train_step
    steps = []

    def cannot_save(state: TrainState, *arguments: Any) -> None:
        (tmp_path / "checkpoints").write_text("a file, where the folder should be")
        train_step(state, *arguments)
        if state.writer.pending:
            wait([state.writer.pending])
        steps.append(state.step)

    monkeypatch.setattr(loop, "train_step", cannot_save)
    with pytest.raises(UserError, match="cannot save the checkpoint of step 5"):
        train(changed(recipe, steps=20, evaluate_every=5), tmp_path, quiet=True)
    assert steps[-1] <= 6  # the error is known after step 6 at the latest


def test_a_signal_does_not_cut_off_the_last_checkpoint(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for = CheckpointWriter.wait
    ended = []

    def interrupted(writer: CheckpointWriter) -> None:
        if writer.pending:
            os.kill(os.getpid(), signal.SIGTERM)
        wait_for(writer)

    monkeypatch.setattr(CheckpointWriter, "wait", interrupted)
    before = signal.signal(signal.SIGTERM, lambda *_: ended.append("at once"))
    try:
        assert train(changed(recipe, steps=1), tmp_path, quiet=True) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not ended
    assert checkpoint_folders(tmp_path)[-1].name == "step-00000001"
