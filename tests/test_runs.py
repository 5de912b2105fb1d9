"""Run folders: those of every format can be read, and what is wrong with one is said in a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import clearhead
from clearhead.config import RUN_FORMAT, UserError
from clearhead.decode.embed import classify
from clearhead.runs import open_run, read_weights, write_weights
from command_line import TRAINED
from saved_runs import save
from tiny_runs import tiny_run
from trained_tokenizers import OURS

WRITTEN = Path(__file__).parent / "runs"  # a run of each format that was ever released, as it was written


def test_there_is_a_run_of_every_format() -> None:
    assert sorted(path.name for path in WRITTEN.glob("format-*[0-9]")) == [
        f"format-{n}" for n in range(1, RUN_FORMAT + 1)
    ]


@pytest.mark.parametrize("folder", sorted(WRITTEN.glob("format-*[0-9]")), ids=lambda folder: folder.name)
def test_a_run_of_any_format_does_what_it_did_when_it_was_written(folder: Path) -> None:
    expected = json.loads(folder.with_suffix(".json").read_text(encoding="utf8"))
    loaded = clearhead.load(folder)
    for source, translation in expected["translations"].items():
        assert loaded.translate(source) == translation
    first, tokenizers = next(iter(expected["translations"])), loaded.run.tokenizers
    ids = torch.tensor([[*tokenizers.source.encode(first), tokenizers.source.end]])
    logits = loaded.model(ids, torch.tensor([[tokenizers.target.start]]))[0, 0, :8]
    torch.testing.assert_close(logits, torch.tensor(expected["logits"]), rtol=1e-4, atol=1e-4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(WRITTEN / f"format-{RUN_FORMAT}", tmp_path / "run")


def swap_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def other_weights(path: Path) -> None:
    tensors = read_weights(path)
    tensors.pop("head.project.weight")
    write_weights(tensors, path)


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("", shutil.rmtree, "there is no such folder; `clearhead train RECIPE` creates one"),
    ("run.toml", Path.unlink, "is not a run: there is no run.toml in it; `clearhead train RECIPE` creates one"),
    ("run.toml", lambda path: path.write_text("format = ["), "run.toml is not valid TOML"),
    ("run.toml", lambda path: path.write_bytes(b"\xff\xfe"), "run.toml is not valid TOML"),
    (
        "run.toml",
        lambda path: path.write_text(path.read_text().replace("format = 1", f"format = {RUN_FORMAT + 1}")),
        f"was written by a newer clearhead (format {RUN_FORMAT + 1}, not {RUN_FORMAT}); update to read it",
    ),
    (
        "run.toml",
        lambda path: path.write_text(path.read_text().replace("heads = ", "haeds = ")),
        "cannot be read: unknown setting model.haeds; did you mean 'heads'",
    ),
    (
        "run.toml",
        lambda path: path.write_text(path.read_text().replace("d_ff = 32", "d_ff = 40")),
        "the model's (40, 16)",
    ),
    ("model.safetensors", Path.unlink, "its training is not finished; `clearhead train --resume"),
    ("model.safetensors", lambda path: path.write_bytes(b""), "model.safetensors: the weights cannot be read"),
    ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-100]), "the weights cannot be read"),
    ("model.safetensors", swap_byte, "the weights are not those that were written; take them from a copy"),
    ("model.safetensors", other_weights, "missing ['head.project.weight']"),
    ("tokenizer.json", Path.unlink, "no tokenizer in this folder"),
    ("tokenizer.json", lambda path: path.write_text("{"), "tokenizer.json is not a tokenizer file, or is damaged"),
    ("tokenizer.json", lambda path: OURS["bpe"].save(path), "ids, and a model of 320: they do not belong together"),
    ("facts.json", lambda path: path.write_text("{"), "facts.json is damaged"),
    ("facts.json", lambda path: path.write_text("[]"), "facts.json is damaged"),
    ("facts.json", lambda path: path.write_text('{"longest": -5}'), "facts.json is damaged (longest = -5 is negative)"),
    ("facts.json", lambda path: path.write_bytes(b'{"labels": "\xff"}'), "facts.json is damaged"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGES, ids=[message[:40] for *_, message in DAMAGES])
def test_a_damaged_run_is_refused_with_a_sentence(
    folder: Path, name: str, damage: Callable[[Path], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)  # away from runs/, which may have some that it would name
    open_run(folder)
    damage(folder / name)
    with pytest.raises(UserError) as refused:
        open_run(folder)
    assert message in str(refused.value)
    assert str(folder) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("elsewhere/fats", "there is no such folder; known runs: elsewhere/fast, elsewhere/slow, runs/demo"),
        (
            "elsewhere",
            "is not a run: there is no run.toml in it; known runs: elsewhere/fast, elsewhere/slow, runs/demo",
        ),
        ("runs/dmeo", "there is no such folder; known runs: runs/demo"),
        ("nowhere/demo", "there is no such folder; known runs: runs/demo"),
        ("the red car", "there is no such folder; a text comes after its run: clearhead VERB RUN TEXT"),
        ("x" * 300, "there is no such folder; known runs: runs/demo"),  # longer than a name can be
    ],
)
def test_who_names_no_run_hears_of_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for run in ("elsewhere/slow", "elsewhere/fast", "runs/demo"):
        Path(run).mkdir(parents=True)
        Path(run, "run.toml").touch()
    with pytest.raises(UserError) as refused:
        open_run(name)
    assert message in str(refused.value)


def test_a_classifier_without_its_labels_is_refused(tmp_path: Path) -> None:
    folder = save(tiny_run("encoder-only", head="classes"), tmp_path)
    (folder / "facts.json").unlink()
    with pytest.raises(UserError, match="names 0 classes, and the model has 3"):
        classify(open_run(folder), ["the red car"])


def test_a_saved_run_is_the_run(tmp_path: Path) -> None:
    run = tiny_run("encoder-only", head="classes")
    again = open_run(save(run, tmp_path))
    assert (again.recipe, again.labels, again.longest) == (run.recipe, run.labels, run.longest)
    assert not any(parameter.requires_grad for parameter in again.model.parameters())
    assert classify(again, ["the red car"]) == classify(run, ["the red car"])


def test_a_run_is_opened_without_random_numbers() -> None:
    before = torch.get_rng_state()
    open_run(TRAINED)
    assert torch.equal(torch.get_rng_state(), before)


def test_labels_in_another_order_are_noticed(tmp_path: Path) -> None:
    folder = save(tiny_run("encoder-only", head="classes"), tmp_path)
    text = (folder / "facts.json").read_text()
    assert '["bad", "good", "so so"]' in text
    (folder / "facts.json").write_text(text.replace('"bad", "good"', '"good", "bad"'))
    with pytest.raises(UserError, match=r"facts\.json is damaged \(it is not what was written\); take it from a copy"):
        open_run(folder)
