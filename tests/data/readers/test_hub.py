"""Hugging Face data sets as corpora."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import DataConfig
from clearhead.data.examples import Corpus, LabelledText, texts_of
from clearhead.data.sources import open_corpus
from reading import error_of


@pytest.fixture(scope="module")
def saved_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    datasets = pytest.importorskip("datasets")
    folder = tmp_path_factory.mktemp("hub") / "saved"
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    rows = {"text": [f"text {number}" for number in range(9)] + [""], "label": [number % 2 for number in range(10)]}
    train = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": train, "validation": train.select(range(2))}).save_to_disk(folder)
    return folder


def test_hugging_face_data_sets(saved_dataset: Path) -> None:
    settings: dict[str, Any] = {
        "corpus": f"hf:{saved_dataset}",
        "task": "classification",
        "text": "text",
        "label": "label",
    }
    opened = open_corpus(DataConfig(**settings, valid="validation"))
    assert opened.splits == ("train", "valid")
    assert list(opened.read("valid")) == [LabelledText("text 0", "bad"), LabelledText("text 1", "good")]
    assert len(list(opened.read("train"))) == 9
    held_out = open_corpus(DataConfig(**settings, hold_out=0.3))
    assert [texts_of(example) for example in held_out.read("valid")] == [("text 7",), ("text 8",)]
    assert "did you mean 'validation'?" in error_of(lambda: opened_test(settings))
    missing = DataConfig(**settings | {"text": "words"})
    assert "no field 'words' (data.text); it has: text, label" in error_of(
        lambda: list(open_corpus(missing).read("train"))
    )


def opened_test(settings: dict[str, Any]) -> Corpus:
    return open_corpus(DataConfig(**settings, test="validatoin"))


def test_hugging_face_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'clearhead[data]'" in error_of(lambda: open_corpus(DataConfig(corpus="hf:glue")))
