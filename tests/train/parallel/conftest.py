"""A recipe for several processes, and its run by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import Recipe
from clearhead.train.run import train
from clearhead.train.watching import log
from several_processes import RECIPE, nominal_peak


@pytest.fixture(autouse=True)
def _no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "peak_flops", nominal_peak)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="session")
def alone(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process."""
    run = tmp_path_factory.mktemp("alone")
    train(recipe, run, quiet=True)
    return run
