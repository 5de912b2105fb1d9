"""Snapshots of the weights: log-spaced steps, half precision."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from clearhead.config import Recipe
from clearhead.train.watching.snapshots import snapshot_steps


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
