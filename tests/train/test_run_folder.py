"""A run folder is never overwritten and never shared by two trainings."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import Recipe, UserError
from clearhead.recipes import load_recipe, write_recipe
from clearhead.runs import open_run
from clearhead.train import loop
from clearhead.train import run as run_module
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.folder import locked_folder
from clearhead.train.run import train
from command_line import Verb
from forked import PROCESSES
from patience import PATIENCE
from run_folders import changed, content_of

# --- nothing is overwritten -------------------------------------------------------------------------------------------

PARTS = ["run.toml", "model.safetensors", "tokenizer.json", "metrics.jsonl", "facts.json", "README.md"]


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", [*PARTS, "checkpoints", "snapshots", "notes.txt", ".env", ".lock"])
def test_a_folder_with_anything_in_it_is_left_alone(
    recipe: Recipe, trained: Path, tmp_path: Path, name: str, resume: bool
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if (trained / name).is_file() and name == "run.toml":
        shutil.copy(trained / name, folder / name)  # without a tokenizer, it is a recipe
    elif (trained / name).is_dir() or name == "snapshots":
        (folder / name).mkdir()
        (folder / name / "step-00000001").touch()
    else:
        (folder / name).write_text("mine")
    before = content_of(folder)
    with pytest.raises(UserError, match=r"start another run with --run DIR|no run began in") as refused:
        train(recipe, folder, resume=resume, quiet=True)
    assert "remove" not in str(refused.value)  # it may be the user's home
    assert content_of(folder) == before
    if name == ".lock":
        assert (folder / ".lock").read_text() == "mine"
    else:
        assert name == "run.toml" or not (folder / ".lock").exists()


def test_a_lock_that_is_a_link_is_not_followed(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "number").write_text("17\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "number")
    with pytest.raises(UserError, match=r"it holds \.lock, but no run to resume"):
        train(recipe, tmp_path / "run", quiet=True)
    assert (tmp_path / "number").read_text() == "17\n"


def test_a_file_that_was_cut_off_with_the_start_is_not_in_the_way(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("17\n")
    (tmp_path / ".17.tokenizer.json").write_text("{")
    train(changed(recipe, steps=1), tmp_path, quiet=True)


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("wrong", ["data.path", "train.freeze"])  # before and after the tokenizer is trained
def test_a_training_that_saves_nothing_leaves_no_folder(
    recipe: Recipe, tmp_path: Path, existed: bool, wrong: str
) -> None:
    folder = tmp_path / "failed"
    if existed:
        folder.mkdir()
    missing = replace(recipe, data=replace(recipe.data, corpus="", path=str(tmp_path / "missing")))
    with pytest.raises(UserError, match=wrong):
        train(missing if wrong == "data.path" else changed(recipe, freeze="nothing"), folder, quiet=True)
    assert folder.exists() == existed


@pytest.mark.parametrize("resume", [False, True])
def test_a_trained_model_without_checkpoints_is_not_overwritten(recipe: Recipe, run: Path, resume: bool) -> None:
    shutil.rmtree(run / "checkpoints")
    before = content_of(run)
    for other in (recipe, changed(recipe, steps=1)):
        with pytest.raises(UserError, match=r"a trained model without checkpoints/, so there is nothing to resume"):
            train(other, run, resume=resume, quiet=True)
    assert content_of(run) == before


def test_an_empty_name_is_no_folder(verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "demo"):
        _, notes, code = verb(name, *(["phrasebook"] if name == "train" else []), "--run", "")
        assert ("an empty name is not a folder" in notes, code) == (True, 2)
    assert list(tmp_path.iterdir()) == []


def killed_at(moment: str, recipe: Recipe, run: Path, kind: signal.Signals = signal.SIGKILL) -> None:
    """Start or resume a training in another process, which sends itself a signal at a moment."""
    process = PROCESSES.Process(target=train_until, args=(moment, recipe, run, kind))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == (130 if kind == signal.SIGINT else -kind)


def train_until(moment: str, recipe: Recipe, run: Path, kind: signal.Signals) -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # as the command line does during an import
    setattr(run_module, moment, lambda *_: os.kill(os.getpid(), kind))
    train(recipe, run, resume=run.exists(), quiet=True)


def test_a_start_that_was_cut_off_can_be_started_again(recipe: Recipe, trained: Path, tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    killed_at("open_train_batches", recipe, early)
    assert sorted(content_of(early)) == ["tokenizer.json"]
    train(recipe, early, quiet=True)  # there was no run yet
    killed_at("training_loop", recipe, late)
    assert not checkpoint_folders(late)
    with pytest.raises(UserError, match="a run that has no checkpoint yet; --resume starts it again"):
        train(recipe, late, quiet=True)
    with pytest.raises(UserError, match=r"another recipe: train.beta1 = 0.5, not 0.9"):
        train(changed(recipe, beta1=0.5), late, resume=True, quiet=True)
    train(recipe, late, resume=True, quiet=True)
    for folder in (early, late):
        assert (folder / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_a_recipe_that_somebody_wrote_into_a_folder_is_not_taken_for_a_run(recipe: Recipe, tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    folder.mkdir()
    write_recipe(recipe, folder / "run.toml")
    for use in (lambda: train(recipe, folder, quiet=True), lambda: train(recipe, folder, resume=True, quiet=True)):
        with pytest.raises(UserError, match=r"no run began in .*rec: .* train .*rec/run.toml --run DIR` trains it"):
            use()
    with pytest.raises(UserError, match="no run began in"):
        open_run(folder)
    with pytest.raises(UserError, match=r"is a folder; its recipe is .*rec/run\.toml"):
        load_recipe(str(folder))
    assert [path.name for path in folder.iterdir()] == ["run.toml"]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_first_step_leaves_no_folder(
    recipe: Recipe, trained: Path, tmp_path: Path, kind: signal.Signals
) -> None:
    run = tmp_path / "run"
    for moment in ("open_train_batches", "save_start", "training_loop"):
        killed_at(moment, changed(recipe, snapshots=2), run, kind)
        assert not run.exists()
    killed_at("training_loop", recipe, run)
    before = content_of(run)
    assert "run.toml" in before
    killed_at("open_train_batches", recipe, run, kind)  # a run that is resumed
    assert content_of(run) == before
    train(recipe, run, resume=True, quiet=True)
    assert (run / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


@pytest.mark.parametrize("moment", ["mkdir", "open"])
def test_a_signal_while_the_folder_is_created_leaves_none(tmp_path: Path, moment: str) -> None:
    process = PROCESSES.Process(target=stop_while_creating, args=(tmp_path / "run", moment))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGTERM
    assert not (tmp_path / "run").exists()


def stop_while_creating(run: Path, moment: str) -> None:
    """Lock a run folder; as soon as it exists, or its lock file does, this process sends itself a signal."""
    owner = Path if moment == "mkdir" else os
    create = getattr(owner, moment)

    def stopped(*arguments: Any, **options: Any) -> Any:
        made = create(*arguments, **options)
        setattr(owner, moment, create)
        os.kill(os.getpid(), signal.SIGTERM)
        return made

    setattr(owner, moment, stopped)
    with locked_folder(run, resume=False):
        pass


def test_an_error_in_the_first_step_leaves_no_folder_and_one_in_a_later_step_does(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy, such as smaller batches, would be refused for a run that has begun."""
    train_step = loop.train_step
    for failing in (1, 2):
        steps = iter(range(1, 3))

        def fail(*arguments: Any, failing: int = failing, steps: Iterator[int] = steps) -> None:
            if next(steps) == failing:
                raise UserError("the GPU has too little memory")
            train_step(*arguments)

        monkeypatch.setattr(loop, "train_step", fail)
        with pytest.raises(UserError, match="too little memory"):
            train(recipe, tmp_path / "run", quiet=True)
        assert (tmp_path / "run").exists() == (failing == 2)


def test_signals_are_handled_as_before_when_the_training_has_ended(recipe: Recipe, tmp_path: Path) -> None:
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(kind) for kind in kinds]
    for settings in ({"freeze": "nothing"}, {}):
        with suppress(UserError):
            train(changed(recipe, **settings), tmp_path / "run", quiet=True)
        assert [signal.getsignal(kind) for kind in kinds] == before


# --- one process at a time --------------------------------------------------------------------------------------------


@pytest.fixture
def other_process(run: Path) -> Iterator[ForkServerProcess]:
    """Another process that has locked the run, as training does."""
    locked = PROCESSES.Event()
    process = PROCESSES.Process(target=hold_lock, args=(run, locked))
    process.start()
    assert locked.wait(120)
    yield process
    process.kill()
    process.join()


def hold_lock(run: Path, locked: Event) -> None:
    with locked_folder(run, resume=True):
        locked.set()
        time.sleep(1000)


@pytest.mark.parametrize("resume", [False, True])
def test_two_trainings_do_not_share_a_folder(
    recipe: Recipe, run: Path, other_process: ForkServerProcess, resume: bool
) -> None:
    with pytest.raises(UserError, match=rf"is in use: process {other_process.pid} is training into it"):
        train(recipe, run, resume=resume, quiet=True)
    other_process.kill()  # kill -9 releases the lock
    other_process.join()
    train(recipe, run, resume=True, quiet=True)


def test_the_lock_ends_with_the_training(recipe: Recipe, run: Path) -> None:
    for _ in range(2):
        with locked_folder(run, resume=True):
            assert (run / ".lock").read_text() == f"{os.getpid()}\n"


def test_nothing_is_saved_into_a_folder_that_another_process_has_taken(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = loop.train_step

    def replaced(*arguments: Any) -> None:
        (tmp_path / ".lock").unlink()
        (tmp_path / ".lock").write_text("1\n")
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", replaced)
    with pytest.raises(UserError, match=r"was replaced: process 1 is training into it now"):
        train(changed(recipe, steps=1), tmp_path, quiet=True)
    assert not checkpoint_folders(tmp_path)


def test_a_folder_that_another_process_has_begun_is_not_removed(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training whose folder was renamed ends; meanwhile another one has begun under the same name."""
    run = tmp_path / "run"
    train_step = loop.train_step

    def renamed(*arguments: Any) -> None:
        run.rename(tmp_path / "renamed")
        run.mkdir()
        (run / ".lock").write_text("1\n")
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", renamed)
    with pytest.raises(UserError, match=r"was replaced: process 1 is training into it now"):
        train(changed(recipe, steps=1), run, quiet=True)
    assert (run / ".lock").exists()
