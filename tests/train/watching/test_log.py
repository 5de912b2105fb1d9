"""The log of a run: watching changes no weight, metrics are strict JSON, resuming writes each line once."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from clearhead.config import DataConfig, Recipe, TrainConfig, UserError
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.run import train
from clearhead.train.watching.log import Log
from watched_runs import CPU, log_of, metrics_of, strict_json


def test_watching_changes_nothing(recipe: Recipe, watched: Path, tmp_path: Path) -> None:
    unwatched = replace(recipe.train, samples=0, snapshots=0, tensorboard=False)
    train(replace(recipe, train=unwatched), tmp_path, quiet=True)
    one, other = (load_file(run / "model.safetensors") for run in (watched, tmp_path))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not metrics_of(tmp_path, "sample")
    assert not {"snapshots", "tensorboard"} & {path.name for path in tmp_path.iterdir()}


def test_a_resumed_run_writes_each_line_and_snapshot_once(recipe: Recipe, watched: Path, tmp_path: Path) -> None:
    """Killed after step 12 was written down and before it was saved: the run goes on from step 8."""
    run = tmp_path / "run"
    shutil.copytree(watched, run)
    shutil.rmtree(checkpoint_folders(run)[-1])
    (run / "model.safetensors").unlink()
    with (run / "metrics.jsonl").open("ab") as file:
        file.write('{"kind": "train", "step": 13, "lo é'.encode()[:-1])
    newest = run / "snapshots" / "step-00000012.safetensors"
    newest.write_bytes(b"")
    newest.with_name("step-00000010.safetensors").write_bytes(b"")  # of a run that was to have other steps
    train(recipe, run, resume=True, quiet=True)
    assert [line["step"] for line in metrics_of(run, "train")] == [*range(1, 13)]
    assert [line["step"] for line in metrics_of(run, "valid")] == [4, 8, 12]
    assert [line["step"] for line in metrics_of(run, "sample")] == [4, 4, 8, 8, 12, 12]
    assert [line["loss"] for line in metrics_of(run, "train")] == [
        line["loss"] for line in metrics_of(watched, "train")
    ]
    assert {path.name for path in (run / "snapshots").iterdir()} == {p.name for p in (watched / "snapshots").iterdir()}
    for path in (watched / "snapshots").iterdir():
        assert (run / "snapshots" / path.name).read_bytes() == path.read_bytes()


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    with log_of(tmp_path) as log:
        log.skipped(3, math.nan, math.inf)
        log.write_entry("note", 4, text="naïve\n", value=1.5)
    lines = [strict_json(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    assert lines == [
        {"kind": "skipped", "step": 3, "loss": None, "norm": None},
        {"kind": "note", "step": 4, "text": "naïve\n", "value": 1.5},
    ]


@pytest.mark.parametrize("task", ["translation", "language", "chat", "masked", "classification", "similarity"])
def test_perplexity_is_for_words(task: str) -> None:
    log = Log(None, Recipe(data=DataConfig(task=task)), CPU, 0, quiet=True)
    assert ("perplexity 2.00" in log.describe_loss(math.log(2))) == (task not in ("classification", "similarity"))
    assert "perplexity" not in log.describe_loss(1.0, other=0.1)  # that loss is no log-likelihood


@pytest.mark.parametrize("setting", ["samples", "snapshots"])
def test_counts_are_not_negative(setting: str) -> None:
    with pytest.raises(UserError, match=rf"train\.{setting} = -1: must not be negative"):
        TrainConfig(**{setting: -1})
    with pytest.raises(UserError, match=r"train\.tensorboard = 1: expected true or false"):
        TrainConfig(tensorboard=1)
