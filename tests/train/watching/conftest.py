"""A tiny recipe, and a run of it that is trained once for all tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig
from clearhead.train.run import train

RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.2),
    train=TrainConfig(steps=12, evaluate_every=4, warmup=3, device="cpu", samples=2, snapshots=5, tensorboard=True),
)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    for package in ("matplotlib", "tensorboard"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clearhead[watch]'")
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="session")
def watched(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run with samples, snapshots and TensorBoard files; tests must not change it."""
    run = tmp_path_factory.mktemp("watched")
    train(recipe, run, quiet=True)
    return run
