"""A run is resumed only as what it was started as, and says where it continues."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import Recipe, TokenizerConfig, UserError
from clearhead.runs import open_run
from clearhead.train import run as run_module
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.run import train
from command_line import Verb
from run_folders import changed, content_of


def swap_words(path: Path) -> None:
    path.write_text(path.read_text().replace('"Lowercase"', '"Strip"').replace("the", "eht", 1))


def test_a_foreign_tokenizer_is_refused_even_with_fewer_ids(recipe: Recipe, run: Path) -> None:
    path = run / "tokenizer.json"
    open_run(run).tokenizers.target.save(path)  # the same tokenizer, written again
    open_run(run)
    from clearhead.text.tokenizer import train_tokenizer

    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    for use in (lambda: open_run(run), lambda: train(recipe, run, resume=True, quiet=True)):
        with pytest.raises(UserError, match=r"tokenizer.json is not the tokenizer that the run was trained with"):
            use()


def test_a_missing_tokenizer_is_named(run: Path) -> None:
    (run / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"tokenizer.json is missing; take the tokenizer from a copy"):
        open_run(run)


def test_a_run_of_an_earlier_version_knows_no_hashes_and_can_be_resumed(recipe: Recipe, run: Path) -> None:
    facts = json.loads((run / "facts.json").read_text())
    assert facts.pop("tokenizers")
    assert facts.pop("data")
    assert facts.pop("hash")
    (run / "facts.json").write_text(json.dumps(facts))
    open_run(run)
    train(recipe, run, resume=True, quiet=True)
    assert json.loads((run / "facts.json").read_text())["data"]


@pytest.fixture
def reviews(recipe: Recipe, tmp_path: Path) -> Recipe:
    """A classifier of texts in a CSV file."""
    rows = [f"{word} film {n},{word}" for n in range(40) for word in ("bad", "good")]
    for split in ("train", "valid"):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"{split}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    data = replace(recipe.data, task="classification", corpus="", path=str(tmp_path / "data"))
    model = replace(recipe.model, family="encoder-only", head="classes")
    return replace(recipe, data=replace(data, text="text", label="label"), model=model)


def replace_in(path: Path, old: str, new: str) -> int:
    return path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: [replace_in(data / f"{s}.csv", ",bad", ",worse") for s in ("train", "valid")],
            "the labels bad, good",
        ),
        (lambda data: replace_in(data / "train.csv", "film", "book"), "the training data is not what"),
    ],
)
def test_changed_data_is_noticed_on_resume(
    reviews: Recipe, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    run = tmp_path / "run"
    train(reviews, run, quiet=True)
    before = content_of(run)
    change(tmp_path / "data")
    with pytest.raises(UserError, match=message):
        train(changed(reviews, steps=6), run, resume=True, quiet=True)
    assert content_of(run) == before


def test_a_run_can_be_resumed_from_its_folder_alone(
    verb: Verb, recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, notes, code = verb("train", "--resume", run, "train.steps=6")
    assert code == 0, notes
    assert checkpoint_folders(run)[-1].name == "step-00000006"
    _, notes, code = verb("train", "--resume", run.parent / "nowhere")
    assert ("there is no run in this folder" in notes, code) == (True, 1)


def test_a_run_that_cannot_be_resumed_yet_says_that_it_starts(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steps, starts in ((2, True), (4, False)):
        train(changed(recipe, steps=steps), tmp_path / "run", resume=True)
        assert ("has no checkpoint to resume: the run starts from its first step" in capsys.readouterr().err) == starts


def test_a_resumed_run_says_where_it_continues(recipe: Recipe, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(changed(recipe, steps=6), run, resume=True)
    assert f"{run} continues after step 4\n" in capsys.readouterr().err
    train(changed(recipe, steps=6), run, resume=True)
    assert f"{run} has already taken 6 of 6 steps; a larger train.steps continues it" in capsys.readouterr().err


def test_a_run_cannot_be_resumed_with_fewer_steps_than_it_has_taken(recipe: Recipe, run: Path) -> None:
    before = content_of(run)
    with pytest.raises(UserError, match=r"train\.steps = 3: .*run has already taken 4 steps; give at least as many"):
        train(changed(recipe, steps=3), run, resume=True, quiet=True)
    assert content_of(run) == before


def test_a_run_that_has_the_name_of_a_recipe_is_resumed_by_its_folder(
    verb: Verb, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, run.parent / "phrasebook")
    monkeypatch.chdir(run.parent)
    _, notes, code = verb("train", "--resume", "phrasebook", "train.steps=5")
    assert ("phrasebook continues after step 4" in notes, code) == (True, 0)
    assert not (run.parent / "runs").exists()


def test_a_run_that_stopped_early_is_not_trained_further(recipe: Recipe, tmp_path: Path) -> None:
    stuck = changed(recipe, learning_rate=1e-30, evaluate_every=1, patience=2, steps=50)
    train(stuck, tmp_path, quiet=True)
    before = content_of(tmp_path)
    train(stuck, tmp_path, resume=True, quiet=True)
    assert content_of(tmp_path) == before


def test_the_learning_rate_may_change_on_resume(recipe: Recipe, run: Path) -> None:
    train(changed(recipe, steps=6, learning_rate=1e-5), run, resume=True, quiet=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rates = [row["rate"] for row in rows if row["kind"] == "train"]
    assert len(rates) == 6
    assert max(rates[4:]) <= 1e-5 < min(rates[:3])


def test_a_resume_that_fails_changes_nothing(recipe: Recipe, run: Path) -> None:
    (checkpoint_folders(run)[-1] / "manifest.json").write_text("{}")
    before = content_of(run)
    with pytest.raises(UserError, match="is damaged"):
        train(changed(recipe, steps=50, learning_rate=1.0), run, resume=True, quiet=True)
    assert content_of(run) == before


def test_without_validation_the_error_names_the_checkpoint_to_remove(
    recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "open_valid_batches", lambda *_: None)
    wild = changed(recipe, steps=20, evaluate_every=1, learning_rate=1e30)
    with pytest.raises(
        UserError, match=r"not finite 5 times in a row, last at step 10.*remove checkpoints/step-00000005"
    ):
        train(wild, run, resume=True, quiet=True)
    assert [folder.name for folder in checkpoint_folders(run)] == ["step-00000004", "step-00000005"]
    shutil.rmtree(run / "checkpoints" / "step-00000005")
    train(changed(recipe, steps=8, learning_rate=1e-4), run, resume=True, quiet=True)
    assert checkpoint_folders(run)[-1].name == "step-00000008"
