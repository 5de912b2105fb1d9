"""Which corpus the settings choose."""

from __future__ import annotations

from clearhead.config import DataConfig
from clearhead.data.sources import open_corpus
from reading import error_of


def test_no_corpus_or_two() -> None:
    assert "set data.corpus" in error_of(lambda: open_corpus(DataConfig()))
    assert "choose one" in error_of(lambda: DataConfig(corpus="phrasebook", path="x"))
