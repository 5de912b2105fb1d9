"""`clearhead train`: what the verb does around a training; tests/train is about the training itself."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from clearhead.recipes import load_recipe
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


def test_a_recipe_may_come_from_windows(tmp_path: Path) -> None:
    text = 'name = "win"\r\nabout = """a\r\nb"""\r\n[data]\r\ncorpus = "phrasebook"\r\n'
    (tmp_path / "win.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    recipe = load_recipe(str(tmp_path / "win.toml"))
    assert (recipe.name, recipe.about) == ("win", "a\nb")


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/b", "", ".", "..", "a\nb", "\x1b[2J"])
def test_the_name_of_a_recipe_stays_in_runs(
    name: str, verb: Verb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "train", lambda *_: 0)
    (tmp_path / "my.toml").write_text(f'name = {json.dumps(name)}\n[data]\ncorpus = "phrasebook"\n')
    _, notes, code = verb("train", "my.toml")
    assert (f"name = {name!r} in the recipe cannot name a folder in runs/" in notes, code) == (True, 1)
    assert verb("train", "my.toml", "--run", "mine")[2] == 0


def test_a_recipe_of_a_built_in_corpus_reads_own_data(tmp_path: Path, verb: Verb) -> None:
    """A path is enough: what data.corpus says need not be cleared. The log lists the labels that it found."""
    table = tmp_path / "mine.csv"
    table.write_text("review;stars\n" + "Cold soup, again;bad\nWarm soup;good\n" * 20)
    own = (f"data.path={table}", "data.text=review", "data.label=stars", "data.hold_out=0.1")
    small = ("tokenizer.vocab=300", "model.d_model=16", "model.d_ff=32", "train.steps=2", f"data.cache={tmp_path}")
    _, notes, code = verb("train", "reviews", *own, *small, "--run", tmp_path / "run")
    assert ("data: 2 labels: bad, good" in notes, code) == (True, 0), notes
    lines, notes, code = verb("evaluate", tmp_path / "run", "--split", "valid")
    assert ("mine.csv, valid, 4 examples" in lines[0], code) == (True, 0), notes
