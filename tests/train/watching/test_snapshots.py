"""Snapshots of the weights: log-spaced steps, half precision."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from clearhead.config import Recipe, UserError
from clearhead.train.watching.snapshots import snapshot_steps, write_snapshot
from properties import given, st


@given(st.integers(1, 10_000), st.integers(0, 60))
def test_snapshots_lie_log_spaced_from_first_to_last(steps: int, count: int) -> None:
    found = snapshot_steps(steps, count)
    assert len(found) == min(count, steps + 1)
    assert list(found) == sorted(set(found))
    if count:
        assert found[-1] == steps
    if count > 1:
        assert found[0] == 0
    gaps = [b - a for a, b in pairwise(found)]
    assert all(b >= a - 1 for a, b in pairwise(gaps))  # wider and wider, but for rounding


def test_snapshots_are_the_weights(recipe: Recipe, watched: Path) -> None:
    paths = sorted((watched / "snapshots").iterdir())
    assert [int(path.stem[5:]) for path in paths] == list(snapshot_steps(12, 5)) == [0, 1, 2, 5, 12]
    last, model = load_file(paths[-1]), load_file(watched / "model.safetensors")
    assert last.keys() == model.keys()
    assert all(torch.equal(last[name], model[name].half()) for name in model)
    start = load_file(paths[0])
    assert any(not torch.equal(start[name], last[name]) for name in model)


def test_a_snapshot_that_cannot_be_written_says_how_to_continue(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "snapshots").touch()  # a file, where the folder has to be
    settings = replace(recipe.train, steps=1, snapshots=1)
    weights = {"weight": torch.zeros(2)}
    with pytest.raises(UserError, match=r"cannot write.*continue with --resume, also without.* train.snapshots=0"):
        write_snapshot(lambda: weights, 1, settings, tmp_path)
    with pytest.raises(UserError, match="is gone: it was removed or renamed"):
        write_snapshot(lambda: weights, 1, settings, tmp_path / "gone")
