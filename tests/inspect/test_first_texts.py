"""The texts that the explorer proposes: of the run's samples, else of its corpus."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from clearhead.config import DataConfig
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.data.sources import open_corpus
from clearhead.inspect.web.facts import describe, first_texts
from clearhead.runs import Run
from clearhead.text.dialogue import Dialogue
from tiny_runs import TEXT, tiny_run

READ = {"phrasebook": "source", "stories": "text", "reviews": "text", "paraphrases": "first"}


@pytest.mark.parametrize("corpus", [*READ, "instructions"])
def test_without_samples_the_examples_are_those_of_validation(corpus: str) -> None:
    data = DataConfig(task=built_in_corpus(corpus).task, corpus=corpus, size=500)
    found = first_texts(reading(data))
    for text, example in zip(found, islice(open_corpus(data).read("valid"), 3), strict=True):
        if isinstance(example, Dialogue):
            assert next(each.content for each in example.messages if each.role == "user") in text
        else:
            assert 0 < len(text) <= 120
            assert " ".join(getattr(example, READ[corpus]).split()).startswith(text)


def test_without_samples_and_corpus_there_are_no_examples(tmp_path: Path) -> None:
    assert first_texts(reading(DataConfig(path=str(tmp_path / "gone")))) == []


@pytest.mark.parametrize(("words", "first"), [("a car fast is red the", TEXT), ("a car fast is the", "a cat runs")])
def test_a_translator_starts_with_a_text_whose_words_it_knows(words: str, first: str, tmp_path: Path) -> None:
    run = replace(tiny_run(), folder=tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(words.split()))
    (tmp_path / "metrics.jsonl").write_text('{"kind": "sample", "step": 1, "source": "a cat runs"}\n')
    assert describe(run)["examples"][0] == first


def reading(data: DataConfig) -> Run:
    run = tiny_run()
    return replace(run, recipe=replace(run.recipe, data=data))
