"""A run folder is never overwritten, never shared by two trainings, and resumed only as what it was started as."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import Recipe, TokenizerConfig, UserError
from clearhead.recipes import write_recipe
from clearhead.runs import open_run
from clearhead.train import loop
from clearhead.train import run as run_module
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.folder import locked_folder
from clearhead.train.run import train
from clearhead.train.watching.card import resume_command
from command_line import Verb
from forked import PROCESSES


def content_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def changed(recipe: Recipe, **settings: Any) -> Recipe:
    return replace(recipe, train=replace(recipe.train, **settings))


# --- nothing is overwritten -------------------------------------------------------------------------------------------

PARTS = ["run.toml", "model.safetensors", "tokenizer.json", "metrics.jsonl", "facts.json", "README.md"]


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", [*PARTS, "checkpoints", "snapshots", "notes.txt"])
def test_a_folder_with_anything_in_it_is_left_alone(
    recipe: Recipe, trained: Path, tmp_path: Path, name: str, resume: bool
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if (trained / name).is_file() and name == "run.toml":
        shutil.copy(trained / name, folder / name)
        if resume:
            return  # a start that was cut off: see below
    elif (trained / name).is_dir() or name == "snapshots":
        (folder / name).mkdir()
        (folder / name / "step-00000001").touch()
    else:
        (folder / name).write_text("mine")
    before = content_of(folder)
    with pytest.raises(UserError, match=r"start another run with --run DIR, or remove the folder"):
        train(recipe, folder, resume=resume, quiet=True)
    assert content_of(folder) == before
    assert name == "run.toml" or not (folder / ".lock").exists()


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


def killed_at(moment: str, recipe: Recipe, run: Path) -> None:
    """Start a training in another process, which kills itself at a moment."""
    process = PROCESSES.Process(target=train_until, args=(moment, recipe, run))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


def train_until(moment: str, recipe: Recipe, run: Path) -> None:
    torch.set_num_threads(1)
    setattr(run_module, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    train(recipe, run, quiet=True)


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


# --- a resumed run is the same run ------------------------------------------------------------------------------------


def swap_words(path: Path) -> None:
    path.write_text(path.read_text().replace('"Lowercase"', '"Strip"').replace("the", "eht", 1))


def test_a_foreign_tokenizer_is_refused_even_with_fewer_ids(recipe: Recipe, run: Path) -> None:
    path = run / "tokenizer.json"
    open_run(run).tokenizers.target.save(path)  # the same tokenizer, written again
    open_run(run)
    from clearhead.text.tokenizer import train_tokenizer

    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    for use in (lambda: open_run(run), lambda: train(recipe, run, resume=True, quiet=True)):
        with pytest.raises(UserError, match=r"tokenizer.json is not the tokenizer that the run was trained with"):
            use()


def test_a_missing_tokenizer_is_named(run: Path) -> None:
    (run / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"tokenizer.json is missing; take the tokenizer from a copy"):
        open_run(run)


def test_a_run_of_an_earlier_version_knows_no_hashes_and_can_be_resumed(recipe: Recipe, run: Path) -> None:
    facts = json.loads((run / "facts.json").read_text())
    assert facts.pop("tokenizers")
    assert facts.pop("data")
    (run / "facts.json").write_text(json.dumps(facts))
    open_run(run)
    train(recipe, run, resume=True, quiet=True)
    assert json.loads((run / "facts.json").read_text())["data"]


@pytest.fixture
def reviews(recipe: Recipe, tmp_path: Path) -> Recipe:
    """A classifier of texts in a CSV file."""
    rows = [f"{word} film {n},{word}" for n in range(40) for word in ("bad", "good")]
    for split in ("train", "valid"):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"{split}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    data = replace(recipe.data, task="classification", corpus="", path=str(tmp_path / "data"))
    model = replace(recipe.model, family="encoder-only", head="classes")
    return replace(recipe, data=replace(data, text="text", label="label"), model=model)


def replace_in(path: Path, *words: str) -> None:
    path.write_text(path.read_text().replace(*words))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: [replace_in(data / f"{s}.csv", ",bad", ",worse") for s in ("train", "valid")],
            "the labels bad, good",
        ),
        (lambda data: replace_in(data / "train.csv", "film", "book"), "the training data is not what"),
    ],
)
def test_changed_data_is_noticed_on_resume(
    reviews: Recipe, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    run = tmp_path / "run"
    train(reviews, run, quiet=True)
    before = content_of(run)
    change(tmp_path / "data")
    with pytest.raises(UserError, match=message):
        train(changed(reviews, steps=6), run, resume=True, quiet=True)
    assert content_of(run) == before


def test_a_run_can_be_resumed_from_its_folder_alone(
    verb: Verb, recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, notes, code = verb("train", "--resume", run, "train.steps=6")
    assert code == 0, notes
    assert checkpoint_folders(run)[-1].name == "step-00000006"
    _, notes, code = verb("train", "--resume", run.parent / "nowhere")
    assert ("there is no run in this folder" in notes, code) == (True, 1)


def test_a_run_that_cannot_be_resumed_yet_says_that_it_starts(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steps, starts in ((2, True), (4, False)):
        train(changed(recipe, steps=steps), tmp_path / "run", resume=True)
        assert ("has no checkpoint to resume: the run starts from its first step" in capsys.readouterr().err) == starts


def test_a_resumed_run_says_where_it_continues(recipe: Recipe, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(changed(recipe, steps=6), run, resume=True)
    assert f"{run} continues after step 4\n" in capsys.readouterr().err
    train(changed(recipe, steps=6), run, resume=True)
    assert f"{run} has already taken 6 of 6 steps; a larger train.steps continues it" in capsys.readouterr().err


def test_a_run_that_has_the_name_of_a_recipe_is_resumed_by_its_folder(
    verb: Verb, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, run.parent / "phrasebook")
    monkeypatch.chdir(run.parent)
    _, notes, code = verb("train", "--resume", "phrasebook", "train.steps=5")
    assert ("phrasebook continues after step 4" in notes, code) == (True, 0)
    assert not (run.parent / "runs").exists()


def test_a_run_that_stopped_early_is_not_trained_further(recipe: Recipe, tmp_path: Path) -> None:
    stuck = changed(recipe, learning_rate=1e-30, evaluate_every=1, patience=2, steps=50)
    train(stuck, tmp_path, quiet=True)
    before = content_of(tmp_path)
    train(stuck, tmp_path, resume=True, quiet=True)
    assert content_of(tmp_path) == before


def test_the_learning_rate_may_change_on_resume(recipe: Recipe, run: Path) -> None:
    train(changed(recipe, steps=6, learning_rate=1e-5), run, resume=True, quiet=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rates = [row["rate"] for row in rows if row["kind"] == "train"]
    assert len(rates) == 6
    assert max(rates[4:]) <= 1e-5 < min(rates[:3])


def test_a_resume_that_fails_changes_nothing(recipe: Recipe, run: Path) -> None:
    (checkpoint_folders(run)[-1] / "manifest.json").write_text("{}")
    before = content_of(run)
    with pytest.raises(UserError, match="is damaged"):
        train(changed(recipe, steps=50, learning_rate=1.0), run, resume=True, quiet=True)
    assert content_of(run) == before


# --- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
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


# --- losses that are not finite ---------------------------------------------------------------------------------------


def test_without_validation_the_error_names_the_checkpoint_to_remove(
    recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "open_valid_batches", lambda *_: None)
    wild = changed(recipe, steps=20, evaluate_every=1, learning_rate=1e30)
    with pytest.raises(
        UserError, match=r"not finite 5 times in a row, last at step 10.*remove checkpoints/step-00000005"
    ):
        train(wild, run, resume=True, quiet=True)
    assert [folder.name for folder in checkpoint_folders(run)] == ["step-00000004", "step-00000005"]
    shutil.rmtree(run / "checkpoints" / "step-00000005")
    train(changed(recipe, steps=8, learning_rate=1e-4), run, resume=True, quiet=True)
    assert checkpoint_folders(run)[-1].name == "step-00000008"
