"""Weights of another run: the log says which were taken, and an unfit tokenizer is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import Recipe, TokenizerConfig, UserError
from clearhead.recipes import load_recipe
from clearhead.train.run import train
from clearhead.train.watching.dry_run import dry_run
from saved_runs import save
from tiny_runs import tiny_run


def test_the_log_says_which_weights_were_taken(
    recipe: Recipe, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(recipe, model=replace(recipe.model, d_ff=64), train=replace(recipe.train, init=str(trained)))
    train(other, tmp_path / "other")
    said = capsys.readouterr().err
    assert "train.init: " in said
    assert f"are those of {trained}, 6 stay random: encoder.blocks.0.feed_forward" in said
    train(replace(recipe, train=replace(recipe.train, init=str(trained))), tmp_path / "same")
    assert f"are those of {trained}\n" in capsys.readouterr().err


def test_the_recipe_of_another_task_takes_the_model_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    masked = save(tiny_run("encoder-only"), tmp_path / "masked")
    small = f"data.size=50 data.cache={tmp_path / 'cache'} train.steps=2 train.samples=0 train.device=cpu"
    begin = f"train.init={masked} tokenizer.path={masked}"
    with pytest.raises(UserError, match=rf"no weight fits this model; model\.preset={masked} takes its shape"):
        train(load_recipe("reviews", f"{small} {begin}".split()), tmp_path / "other", quiet=True)
    same = f"model.preset={masked} model.head=classes"
    train(load_recipe("reviews", f"{small} {begin} {same}".split()), tmp_path / "classifier")
    assert f"are those of {masked}, 1 stays random: head.project.weight" in capsys.readouterr().err


def test_adapters_of_random_weights_are_noticed(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(replace(recipe, train=replace(recipe.train, lora=2)), tmp_path)
    assert "train.lora without train.init: the weights that it adapts are random" in capsys.readouterr().err


def test_the_embeddings_of_another_tokenizer_are_refused(recipe: Recipe, trained: Path, tmp_path: Path) -> None:
    begun = replace(recipe, data=replace(recipe.data, seed=5), train=replace(recipe.train, init=str(trained)))
    with pytest.raises(UserError, match=r"has another tokenizer.*tokenizer\.path="):
        train(begun, tmp_path / "other", quiet=True)
    with pytest.raises(UserError, match=r"has another tokenizer.*tokenizer\.path="):
        dry_run(begun)
    own = replace(begun, tokenizer=TokenizerConfig(path=str(trained)))
    train(own, tmp_path / "other", quiet=True)
