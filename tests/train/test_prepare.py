"""What is computed before the first step, and how often the corpus is read for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clearhead.config import DataConfig, Recipe, TokenizerConfig
from clearhead.corpora.generated import GeneratedCorpus
from clearhead.data.examples import Example
from clearhead.text.tokenizer import train_tokenizer
from clearhead.train.prepare import prepare_tokenizers, train_texts

RECIPE = Recipe(data=DataConfig(corpus="phrasebook", size=200), tokenizer=TokenizerConfig(vocab=400))


@pytest.mark.parametrize("separate", [False, True])
def test_the_corpus_is_read_once_for_each_tokenizer(separate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = GeneratedCorpus.read

    def counted(corpus: GeneratedCorpus, split: str) -> Iterator[Example]:
        reads.append(split)
        return read(corpus, split)

    monkeypatch.setattr(GeneratedCorpus, "read", counted)
    tokenizers = prepare_tokenizers(replace(RECIPE, tokenizer=replace(RECIPE.tokenizer, separate=separate)))
    assert reads == ["train"] * (2 if separate else 1)
    sides = [[*train_texts(RECIPE.data, side)] for side in ("source", "target")]
    expected = sides if separate else [sides[0] + sides[1]] * 2
    for tokenizer, texts in zip((tokenizers.source, tokenizers.target), expected, strict=True):
        assert tokenizer.fingerprint == train_tokenizer(RECIPE.tokenizer, texts).fingerprint
