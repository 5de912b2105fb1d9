"""Likelihood: every token is predicted once, with at least half a window before it; perplexities per token and word."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.config import TokenizerConfig, UserError
from clearhead.data.batches import IGNORE, RandomKey, TokenColumn
from clearhead.data.plan import PlannedBatch
from clearhead.data.readers.documents import DocumentPart
from clearhead.data.store import RaggedArray
from clearhead.evaluate.likelihood import Windows, count_text, likelihood_of
from clearhead.evaluate.scores import evaluate
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizers, train_tokenizer
from evaluated_runs import run_on
from properties import given, st
from tiny_runs import SENTENCES, tiny_run, tokenizers


def with_uniform_output(run: Run) -> Run:
    """The run with a model to which all tokens are equally likely."""
    run.model.head.project.weight = torch.nn.Parameter(torch.zeros_like(run.model.head.project.weight))
    return run


def side_of(documents: list[list[int]], width: int) -> TokenColumn:
    start = tokenizers().target.start
    rows = [[start, *ids] for ids in documents]
    offsets = np.cumsum([0, *map(len, rows)])
    return TokenColumn(RaggedArray(np.array([*itertools.chain(*rows), start]), offsets), tokenizers().target, width)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(4, 12))
def test_every_token_is_predicted_once_with_half_a_window_before_it(lengths: list[int], width: int) -> None:
    number = iter(range(100, 1000))  # every token another one: it says which it is
    side = side_of([[next(number) for _ in range(length)] for length in lengths], width)
    windows = Windows(side, side.array.offsets)
    predicted: list[int] = []
    for bucket in windows.buckets(0):
        batch = windows.batch(PlannedBatch(bucket.members, bucket.widths), RandomKey(0, 0, 0))
        for ids, targets in zip(batch.inputs["ids"].tolist(), batch.targets.tolist(), strict=True):
            places = [place for place, target in enumerate(targets) if target != IGNORE]
            assert places[0] == 0 or places[0] >= width // 2
            assert places[0] > 0 or ids[0] == side.start  # only a document's first window predicts all of it
            predicted += [targets[place] for place in places]
    ends = [side.end] * len(lengths)
    assert sorted(predicted) == sorted([*ends, *range(100, 100 + sum(lengths))])


def test_likelihood_is_that_of_each_token_after_its_window() -> None:
    run = tiny_run("decoder-only")
    width = 8
    ids = torch.randint(10, 200, (45,)).tolist()
    side = side_of([ids], width)
    windows = Windows(side, side.array.offsets)
    buckets = windows.buckets(0)
    found = likelihood_of(
        run, [windows.batch(PlannedBatch(bucket.members, bucket.widths), RandomKey(0, 0, 0)) for bucket in buckets]
    )
    text = [side.start, *ids, side.end]
    expected = 0.0
    for place in range(1, len(text)):
        begin = 0 if place <= width else (place - 1 - width // 2) // (width // 2) * (width // 2)
        assert begin == 0 or width // 2 <= place - 1 - begin < width
        logits = run.model(torch.tensor([text[begin:place]]))[0, -1]
        expected -= logits.log_softmax(-1)[text[place]].item()
    assert found.tokens == len(ids) + 1
    assert found.nats == pytest.approx(expected, rel=1e-5)


def test_words_are_counted_with_the_ends_of_lines() -> None:
    pieces = [
        DocumentPart("one two\nthree", False),
        DocumentPart(" four\n", True),
        DocumentPart("été", True),
        DocumentPart("later", True),
    ]
    assert count_text(pieces, 2) == (4 + 2 + 1 + 1, len("one two\nthree four\n") + 5)
    assert count_text(pieces, 0) == (4 + 2 + 1 + 1 + 1 + 1, len("one two\nthree four\n") + 5 + 5)


@pytest.mark.parametrize("pack", [True, False])
def test_uniform_output_has_the_perplexity_of_the_vocabulary(tmp_path: Path, pack: bool) -> None:
    """Perplexity is the size of the vocabulary, and a text of any length is read to its end."""
    text = "\n".join(SENTENCES * 30) + "\n"
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text(text)
    run = run_on(tmp_path, with_uniform_output(tiny_run("decoder-only")), max_length=16, pack=pack)
    scores = evaluate(run)
    vocab = run.model.config.vocab
    tokens = len(tokenizers().target.encode(text)) + 1
    assert scores["perplexity"] == pytest.approx(vocab, rel=1e-5)
    assert scores["word-perplexity"] == pytest.approx(vocab ** (tokens / (len(text.split()) + 120)), rel=1e-4)
    assert scores["bits-per-byte"] == pytest.approx(tokens * math.log2(vocab) / len(text), rel=1e-5)
    assert any("windows of 16 tokens, 8 of them new" in note for note in scores.notes)


def test_unknown_words_are_reported(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("a cat 猫 runs")
    words = train_tokenizer(TokenizerConfig(kind="words"), ["a cat runs"], progress=False)
    run = replace(tiny_run("decoder-only"), tokenizers=Tokenizers(words, words))
    assert "1 of 5 tokens are words that the tokenizer does not know" in evaluate(run_on(tmp_path, run)).notes


def test_documents_on_their_own_differ_from_documents_in_one_row(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("---".join(SENTENCES))
    run = tiny_run("decoder-only")
    alone, joined = (
        evaluate(run_on(tmp_path, run, separator="---", max_length=64, pack=pack)) for pack in (False, True)
    )
    assert alone.examples == joined.examples == len(SENTENCES)
    expected = 0.0
    for sentence in SENTENCES:
        target = tokenizers().target
        ids = torch.tensor([target.start, *target.encode(sentence), target.end])
        expected -= run.model(ids[None, :-1])[0].log_softmax(-1).gather(1, ids[1:, None]).sum().item()
    count = sum(len(tokenizers().target.encode(sentence)) + 1 for sentence in SENTENCES)
    assert math.log(alone["perplexity"]) == pytest.approx(expected / count, rel=1e-5)
    assert alone["perplexity"] != pytest.approx(joined["perplexity"], rel=1e-5)
    assert evaluate(run_on(tmp_path, run, separator="---", pack=False), limit=2).examples == 2


def test_masked_tokens_are_the_same_every_time(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("\n".join(SENTENCES * 20))
    run = run_on(tmp_path, with_uniform_output(tiny_run("encoder-only")), max_length=32)
    scores = evaluate(run)
    assert scores == evaluate(run)
    assert scores["perplexity"] == pytest.approx(run.model.config.vocab, rel=1e-5)
    assert evaluate(run, limit=2).examples == 2 < scores.examples
    with pytest.raises(UserError, match=r"examples has a masked token, data\.mask_rate = 1e-09; evaluate more"):
        evaluate(run_on(tmp_path, run, max_length=32, mask_rate=1e-9))
