"""Which corpus the settings choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clearhead.config import DataConfig
from clearhead.corpora.catalogue import CORPORA
from clearhead.data.sources import open_corpus
from reading import error_of


def test_no_corpus_and_two_corpora_are_refused() -> None:
    assert "set data.corpus" in error_of(lambda: open_corpus(DataConfig()))
    assert "choose one" in error_of(lambda: DataConfig(corpus="phrasebook", path="x"))


@pytest.mark.parametrize("name", CORPORA)
def test_nothing_is_held_out_of_a_corpus_that_has_its_own_valid(name: str) -> None:
    settings = DataConfig(corpus=name, task=CORPORA[name].task)
    assert "valid" in open_corpus(settings).splits
    message = error_of(lambda: open_corpus(replace(settings, hold_out=0.1)))
    assert message.startswith(f"data.hold_out = 0.1: data.corpus = {name!r} has a split 'valid' of its own")
    assert message.endswith("set data.hold_out = 0")
