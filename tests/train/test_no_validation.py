"""Training without validation data: what works, and what says that it needs some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import Recipe, UserError
from clearhead.evaluate.scores import evaluate
from clearhead.files import read_metrics
from clearhead.recipes import write_recipe
from clearhead.runs import open_run
from clearhead.train.run import train
from clearhead.train.watching.dry_run import dry_run
from command_line import Verb


@pytest.fixture
def without_valid(recipe: Recipe, tmp_path: Path) -> Recipe:
    """A recipe for a folder that has a train file and nothing else."""
    (tmp_path / "data").mkdir()
    rows = "".join(f"the red car {n}\tla voiture rouge {n}\n" for n in range(60))
    (tmp_path / "data" / "train.tsv").write_text("en\tfr\n" + rows)
    data = replace(recipe.data, corpus="", path=str(tmp_path / "data"), source="en", target="fr")
    return replace(recipe, data=data)


def test_the_card_shows_only_commands_that_work_in_the_folder(
    without_valid: Recipe, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held_out = replace(without_valid.data, hold_out=0.2)
    relative = replace(held_out, path="data")
    cases = {"without": without_valid.data, "held": held_out, "relative": relative, "built in": recipe.data}
    for name, data in cases.items():
        train(replace(recipe, data=data), tmp_path / name, quiet=True)
        shown = "clearhead evaluate . --split valid" in (tmp_path / name / "README.md").read_text()
        assert shown == (name in ("held", "built in")), name
    monkeypatch.chdir("relative")
    with pytest.raises(UserError, match=r"data.path = 'data' does not exist in .*; set data.path=PATH to where"):
        evaluate(open_run("."), "valid")


def test_validation_data_without_a_target_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.txt").write_text("the red car is fast\n" * 60)
    (tmp_path / "data" / "valid.txt").write_text("a")  # masking does not choose this single token
    data = replace(recipe.data, corpus="", path=str(tmp_path / "data"), task="masked", separator="\n")
    data = replace(data, pack=False)
    masked = replace(recipe, data=data, model=replace(recipe.model, family="encoder-only"))
    with pytest.raises(
        UserError,
        match=r"the split 'valid' of data has no target to evaluate the model on; add .*data.mask_rate = 0.15",
    ):
        train(masked, tmp_path / "run", quiet=True)


@pytest.mark.parametrize("average", ["none", "last"])
def test_training_needs_no_validation_data(
    without_valid: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str], average: str
) -> None:
    run = tmp_path / "run"
    settings = replace(without_valid.train, average=average)
    train(replace(without_valid, train=settings), run)
    said = capsys.readouterr().err
    assert said.count("no split 'valid', so nothing is evaluated; data.hold_out=0.05") == 1
    assert "validation" not in said
    assert {row["kind"] for row in read_metrics(run)} == {"train"}
    assert open_run(run)
    train(replace(without_valid, train=replace(settings, steps=6)), run, resume=True, quiet=True)


@pytest.mark.parametrize(("setting", "value"), [("keep", "best"), ("patience", 2), ("best_by", "bleu")])
def test_what_needs_validation_data_says_so(without_valid: Recipe, tmp_path: Path, setting: str, value: Any) -> None:
    settings = replace(without_valid.train, **{setting: value})
    with pytest.raises(UserError, match=rf"train\.{setting} = .* needs validation data.*data\.hold_out=0\.05"):
        train(replace(without_valid, train=settings), tmp_path / "run", quiet=True)
    with pytest.raises(UserError, match=rf"train\.{setting} = .* needs validation data"):
        dry_run(replace(without_valid, train=settings))


def test_a_dry_run_needs_no_validation_data(verb: Verb, without_valid: Recipe, tmp_path: Path) -> None:
    write_recipe(without_valid, tmp_path / "tiny.toml")
    lines, notes, code = verb("train", tmp_path / "tiny.toml", "--dry-run")
    assert (code, any(line.startswith("time: ") for line in lines)) == (0, True), notes
