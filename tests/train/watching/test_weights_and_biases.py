"""Weights & Biases receive the numbers of metrics.jsonl; a stand-in for the package records what it is given."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import Recipe, UserError
from clearhead.train.run import train
from watched_runs import log_of, metrics_of


class Account:
    """What the package was given: the arguments of each `init`, and for each step its values."""

    class Error(Exception):
        pass

    def __init__(self) -> None:
        self.opened: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, Any]]] = []
        self.finished = 0
        self.Table = dict
        self.Settings = dict

    def init(self, **arguments: Any) -> Account:
        if "offline" in arguments["name"]:
            raise self.Error("no API key configured")
        self.opened.append(arguments)
        return self

    def log(self, values: dict[str, Any], step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.finished += 1

    def curve(self, name: str) -> dict[int, Any]:
        return {step: values[name] for step, values in self.logged if name in values}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    found = Account()
    monkeypatch.setitem(sys.modules, "wandb", found)
    return found


def test_curves_and_samples_are_sent_and_a_resumed_run_continues_them(
    recipe: Recipe, tmp_path: Path, account: Account
) -> None:
    settings = replace(recipe.train, steps=4, evaluate_every=2, tensorboard=False, wandb=True)
    train(replace(recipe, train=settings), tmp_path / "run", quiet=True)
    train(replace(recipe, train=replace(settings, steps=6)), tmp_path / "run", resume=True, quiet=True)
    run = tmp_path / "run"
    assert account.curve("loss/train") == {row["step"]: row["loss"] for row in metrics_of(run, "train")}
    assert account.curve("loss/valid") == {row["step"]: row["loss"] for row in metrics_of(run, "valid")}
    assert [*account.curve("samples")] == [2, 4, 6]
    shown = account.curve("samples")[6]
    last = metrics_of(run, "sample")[-1]
    assert dict(zip(shown["columns"], shown["data"][-1], strict=True)).items() <= last.items()
    first, second = account.opened
    assert (first["id"], first["name"], first["resume"]) == (second["id"], "run", "allow")
    assert json.dumps(first["config"]["train"])
    assert account.finished == 2


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: Account) -> None:
    (tmp_path / "offline").mkdir()
    with pytest.raises(UserError, match=r"train.wandb = true: no API key configured; or set WANDB_MODE=offline"):
        log_of(tmp_path / "offline", wandb=True)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match=r"train.wandb = true needs.*pip install 'clearhead\[wandb\]'"):
        log_of(tmp_path, wandb=True)
