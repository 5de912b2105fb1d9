"""`clearhead train`: what the verb does around a training; tests/train is about the training itself."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from clearhead.train import run as run_module
from command_line import Verb


@pytest.mark.parametrize("stopped", [0, 2])
def test_the_garbage_collector_leaves_out_what_was_imported(
    stopped: int, verb: Verb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left_out: list[int] = []

    def train(*_: object) -> int:
        assert gc.isenabled()
        left_out.append(gc.get_freeze_count())
        return stopped

    monkeypatch.setattr(run_module, "train", train)
    *_, code = verb("train", "phrasebook", "--run", tmp_path / "run")
    assert code == (128 + stopped if stopped else 0)
    assert left_out[0] > 10_000
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
