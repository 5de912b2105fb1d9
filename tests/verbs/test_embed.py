"""`clearhead embed` writes what the library computes, for numpy or as JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import clearhead
from clearhead.cli import main
from command_line import Verb


def test_embed_writes_what_numpy_reads_or_json(
    verb: Verb, runs: dict[str, Path], capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, run = ["the red car", "a cat runs", "the dog"], runs["similarity"]
    vectors = clearhead.load(run).embed(texts)
    monkeypatch.setattr(sys, "argv", ["clearhead", "embed", str(run), *texts])
    main()
    np.testing.assert_allclose(np.load(io.BytesIO(capsysbinary.readouterr().out)), vectors.numpy())
    lines, _, _ = verb("embed", run, "--json", stdin="\n".join(texts))
    read = [json.loads(line) for line in lines]
    assert [each["text"] for each in read] == texts
    torch.testing.assert_close(torch.tensor([each["vector"] for each in read]), vectors)


def test_no_lines_give_an_array_without_rows(
    runs: dict[str, Path], capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["clearhead", "embed", str(runs["similarity"])])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    main()
    width = clearhead.load(runs["similarity"]).run.recipe.model.d_model
    assert np.load(io.BytesIO(capsysbinary.readouterr().out)).shape == (0, width)


def test_similar_shows_the_closest_first(verb: Verb, runs: dict[str, Path]) -> None:
    texts, run = ["the red car", "a cat runs", "the dog"], runs["similarity"]
    lines, _, _ = verb("embed", run, "--similar", "--json", *texts)
    vectors = clearhead.load(run).embed(texts)
    for row, line in enumerate(map(json.loads, lines)):
        cosines = [other["cosine"] for other in line["similar"]]
        assert cosines == sorted(cosines, reverse=True)
        assert {other["text"] for other in line["similar"]} == {*texts} - {texts[row]}
        expected = float(vectors[row] @ vectors[texts.index(line["similar"][0]["text"])])
        assert cosines[0] == pytest.approx(expected, abs=1e-5)
    shown, _, _ = verb("embed", run, "--similar", *texts)
    assert [line for line in shown if not line.startswith("  ")] == texts
    assert verb("embed", run, "--similar", "alone")[1:] == (
        "clearhead: --similar compares texts with each other: give two or more",
        1,
    )
