"""`clearhead evaluate` reports what the library computes, as JSON and as a page."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import DataConfig
from clearhead.evaluate.scores import evaluate
from clearhead.recipes import load_recipe, write_recipe
from clearhead.runs import write_weights
from command_line import Verb
from evaluated_runs import run_on, write_pairs
from saved_runs import save
from tiny_runs import SENTENCES, tiny_run


def test_from_the_command_line(tmp_path: Path, verb: Verb) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    write_recipe(run.recipe, tmp_path / "run.toml")
    run.tokenizers.save(tmp_path)
    write_weights(dict(run.model.named_parameters()), tmp_path / "model.safetensors")
    [line], notes, code = verb("evaluate", tmp_path, "--beam", "1", "--json", "--report", tmp_path / "report.html")
    assert code == 0, notes
    expected = evaluate(run, beam=1)
    assert json.loads(line)["scores"]["chrf"] == pytest.approx(expected["chrf"])
    assert "chrF" in (tmp_path / "report.html").read_text()
    _, error, code = verb("evaluate", tmp_path, "--report", tmp_path / "report.doc")
    assert code == 1
    assert "the name must end with .html or .png or .svg or .pdf" in error


def test_quantised_weights_change_the_score_a_little(tmp_path: Path, verb: Verb) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("\n".join(SENTENCES))
    run = run_on(tmp_path, tiny_run("decoder-only", position="rotary"))
    save(run, tmp_path)
    measured = {}
    for weights in ("float32", "int8"):
        [line], notes, code = verb("evaluate", tmp_path, "--weights", weights, "--device", "cpu", "--json")
        assert code == 0, notes
        measured[weights] = json.loads(line)["scores"]["perplexity"]
    assert measured["float32"] == pytest.approx(evaluate(run)["perplexity"], rel=1e-5)
    assert measured["int8"] == pytest.approx(measured["float32"], rel=0.1)
    assert measured["int8"] != pytest.approx(measured["float32"], rel=1e-5)


def test_a_model_from_elsewhere_is_told_the_whole_command(tmp_path: Path, verb: Verb, runs: dict[str, Path]) -> None:
    """Its columns and its split, in one message: then the next try works."""
    run, table = shutil.copytree(runs["similarity"], tmp_path / "mine"), tmp_path / "pairs.csv"
    write_recipe(replace(load_recipe(str(run / "run.toml")), data=DataConfig(task="similarity")), run / "run.toml")
    table.write_text("a cat,the cat,5\na dog,a car,1\nthe dog,dogs,4\n")
    command = f"clearhead evaluate {run} --split train data.path=FILE data.text=FIELD data.other=FIELD [data.label"
    assert f"has no data; the whole command: {command}" in verb("evaluate", run)[1]
    _, error, code = verb("evaluate", run, f"data.path={table}")
    assert (command.replace("FILE", str(table)) in error, "it has 1 ('a cat'), 2 ('the cat'), 3 ('5')" in error) == (
        True,
        True,
    )
    command = error.rpartition("the whole command: clearhead ")[2]
    for column in "123":
        command = command.replace("FIELD", column, 1)
    lines, error, code = verb(*command.replace("[", "").replace("]", "").split())
    assert (code, any("Spearman" in line for line in lines)) == (0, True), error


def test_pairs_without_scores_say_that_no_correlation_is_defined(
    tmp_path: Path, verb: Verb, runs: dict[str, Path]
) -> None:
    (tmp_path / "pairs.csv").write_text("a cat,the cat\na dog,a car\n")
    settings = (f"data.path={tmp_path / 'pairs.csv'}", "data.text=1", "data.other=2")
    lines, _, code = verb("evaluate", runs["similarity"], "--split", "train", *settings)
    assert (code, any("no correlation is defined; data.label names" in line for line in lines)) == (0, True), lines
