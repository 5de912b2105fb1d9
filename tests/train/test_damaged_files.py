"""Training survives or explains: damaged and hostile files, a full disk, a folder that disappears."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import Recipe, UserError
from clearhead.files import read_metrics
from clearhead.runs import open_run
from clearhead.train import loop
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.run import train
from clearhead.train.watching import log as log_module
from damaged_files import edit_json
from ordinary_user import as_ordinary_user, folder_for_all


@pytest.mark.parametrize("step", ["abc", 3, None, [1]])
def test_an_edited_manifest_is_refused(recipe: Recipe, run: Path, step: object) -> None:
    manifest = checkpoint_folders(run)[-1] / "manifest.json"
    edit_json(manifest, step=step)
    with pytest.raises(UserError, match=r"is damaged .*remove the folder to continue from step-00000002"):
        train(recipe, run, resume=True, quiet=True)
    earlier = {name: value for name, value in json.loads(manifest.read_text()).items() if name != "hash"}
    manifest.write_text(json.dumps(earlier))  # as an earlier version wrote it
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(manifest.parent)
    manifest.write_text(json.dumps({**earlier, "step": 4}))
    assert load_checkpoint(manifest.parent).step == 4


def test_edited_facts_of_a_checkpoint_are_refused(run: Path) -> None:
    manifest = checkpoint_folders(run)[-1] / "manifest.json"
    facts = json.loads(manifest.read_text())["facts"]
    edit_json(manifest, facts={**facts, "best": 0.0})
    with pytest.raises(UserError, match=r"is damaged \(manifest.json differs from what was written\)"):
        load_checkpoint(manifest.parent)


def test_damaged_lines_of_metrics_are_left_out(recipe: Recipe, run: Path) -> None:
    good = read_metrics(run)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('[1,2]\n"a"\n7\n{"kind": "train", "step": "abc"}\n{"kind": "train", "step": null}\n')
    assert read_metrics(run) == good
    train(recipe, run, resume=True, quiet=True)


def test_a_folder_that_disappears_ends_the_training_with_a_sentence(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = loop.train_step

    def removing(*arguments: Any) -> None:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", removing)
    for snapshots in (0, 3):
        settings = replace(recipe.train, snapshots=snapshots)
        with pytest.raises(UserError, match="is gone: it was removed or renamed"):
            train(replace(recipe, train=settings), tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(recipe: Recipe, trained: Path) -> None:
    with folder_for_all() as place:
        run = shutil.copytree(trained, place / "run")
        (run / ".lock").unlink()
        with (
            as_ordinary_user(),
            pytest.raises(UserError, match=r"cannot write into the run folder .*Permission denied"),
        ):
            train(recipe, run, resume=True, quiet=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_disk_that_is_full_for_metrics_is_a_sentence(
    recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "open_metrics", lambda *_: Path("/dev/full").open("a"))  # noqa: SIM115
    with pytest.raises(UserError, match=r"cannot write metrics.jsonl: the disk is full; .*--resume"):
        train(replace(recipe, train=replace(recipe.train, steps=6)), run, resume=True, quiet=True)


def replace_setting(name: str, value: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        lines = (run / "run.toml").read_text().splitlines()
        changed = [f"{name} = {value}" if line.startswith(f"{name} = ") else line for line in lines]
        (run / "run.toml").write_text("\n".join(changed))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_setting("layers", "1000000000"), "they do not belong together"),
        (replace_setting("encoder_layers", "1000000000"), "they do not belong together"),
        (replace_setting("d_ff", "1000000000000"), "they do not belong together"),
        (lambda run: edit_json(run / "facts.json", longest=-5), "facts.json is damaged"),
        (lambda run: edit_json(run / "facts.json", tokenizers=[1]), "facts.json is damaged"),
    ],
)
def test_a_hostile_run_is_refused_before_anything_is_built(
    run: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(run)
    with pytest.raises(UserError, match=message):
        open_run(run)
