"""Samples of a run: the first validation examples, with the model's output."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import Recipe
from clearhead.data.loader import open_batches
from clearhead.data.sources import open_corpus
from clearhead.train.prepare import prepare_tokenizers
from clearhead.train.run import train
from clearhead.train.watching.log import format_sample
from clearhead.train.watching.samples import first_examples
from watched_runs import TASK_OF_CORPUS, metrics_of


@pytest.mark.parametrize("corpus", TASK_OF_CORPUS)
def test_samples_are_the_first_of_validation(corpus: str, recipe: Recipe, tmp_path: Path) -> None:
    task, shape = TASK_OF_CORPUS[corpus]
    name = "stories" if corpus == "masked" else corpus
    long = task in ("chat", "classification")
    data = replace(recipe.data, corpus=name, task=task, size=40, max_length=256 if long else 64, batch_tokens=1024)
    model = replace(shape, d_model=16, d_ff=32, layers=1, heads=2)
    settings = replace(recipe.train, steps=1, evaluate_every=0, snapshots=0, tensorboard=True)
    train(replace(recipe, data=data, model=model, train=settings), tmp_path, quiet=True)
    samples = metrics_of(tmp_path, "sample")
    assert len(samples) == 2
    first: Any = next(open_corpus(data).read("valid"))
    one = samples[0]
    match task:
        case "translation":
            assert (one["source"], one["reference"]) == (first.source, first.target)
            assert "output" in one
        case "language":
            assert first.text.replace("\n", "⏎").startswith(one["prompt"] + one["reference"])
        case "chat":
            question, answer, *_ = (message.content for message in first.messages if message.role != "system")
            assert one["prompt"].endswith(f"<user>{question}<end><assistant>".replace("\n", "⏎"))
            assert answer.replace("\n", "⏎").startswith(one["reference"])
        case "masked":
            assert "<mask>" in one["text"]
            assert one["hidden"].count("·") == one["guesses"].count("·")
        case "classification":
            assert (one["text"], one["label"]) == (first.text, first.label)
            assert one["prediction"] in {review.label for review in open_corpus(data).read("train")}
        case "similarity":
            assert (one["first"], one["second"], one["score"]) == (first.first, first.second, f"{first.score:.2f}")
            assert -1 <= float(one["cosine"]) <= 1
    assert format_sample({"source": "a", "output": "b"}).plain == "  source  a\n  output  b\n"


def test_a_conversation_whose_answer_was_cut_off_is_no_sample(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for split, question in (("train", "how are you"), ("valid", "how are you " * 40)):
        rows = [{"q": question, "a": "fine"}, {"q": "and you", "a": "well"}]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "data" / f"{split}.jsonl").write_text(lines)
    data = replace(recipe.data, corpus="", path=str(tmp_path / "data"), task="chat", source="q", target="a")
    data = replace(data, too_long="truncate", max_length=32, pack=False)
    model = replace(recipe.model, family="decoder-only")
    settings = replace(recipe.train, steps=1, evaluate_every=0, snapshots=0, tensorboard=False)
    train(replace(recipe, data=data, model=model, train=settings), tmp_path / "run", quiet=True)
    [sample] = metrics_of(tmp_path / "run", "sample")
    assert sample["prompt"] == "<user>and you<end><assistant>"


def test_first_examples_are_first_in_the_corpus_not_in_the_batches(recipe: Recipe) -> None:
    data, tokenizers = replace(recipe.data, batch_tokens=64), prepare_tokenizers(recipe)
    valid = open_batches(data, tokenizers, "valid")
    assert len(valid.dataset.buckets(0)) > 1
    batch = first_examples(valid, 3)
    rows = zip(batch.inputs["source"], batch.inputs["source_real"], strict=True)
    found = [tokenizers.source.decode(ids[real].tolist()) for ids, real in rows]
    assert found == [pair.source for pair in islice(open_corpus(data).read("valid"), 3)]
