"""A tiny recipe and a run of it, trained once for all tests of this folder. Test files may define their own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig
from clearhead.train.run import train

RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=200, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2),
    train=TrainConfig(steps=4, evaluate_every=2, warmup=2, device="cpu"),
)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="session")
def trained(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests must not change it."""
    run = tmp_path_factory.mktemp("trained") / "run"
    assert train(recipe, run, quiet=True) == 0
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return shutil.copytree(trained, tmp_path / "run")
