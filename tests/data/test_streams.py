"""Packed blocks: an epoch visits every token once, dialogues stay whole and apart, resuming is counting."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data.batches import IGNORE, Batch, TokenColumn
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus
from clearhead.data.store import RaggedArray
from clearhead.data.stream import Stream, pack_into_bins
from clearhead.text.chat import render
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizer, train_tokenizer
from properties import given, st
from real_corpora import SHARED, needs_shared

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "red", "birds", "in", "an", "old", "tree"]
DOCUMENTS = [" ".join(WORDS[: 1 + 7 * number % 15] * (1 + number % 3)) for number in range(40)]
START, END, PAD = 1, 2, 0


class Marks:
    """All that a stream asks a tokenizer."""

    pad, start, end = PAD, START, END


def stream_of(lengths: list[int], limit: int, seed: int | None) -> Stream:
    """Documents of these lengths, each [start] and ids that occur nowhere else."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.arange(10, 10 + offsets[-1] + 1)
    values[offsets] = START
    return Stream(TokenColumn(RaggedArray(values, offsets), Marks(), limit), seed)


def pairs_of(batches: list[Batch]) -> list[tuple[int, int]]:
    """Each input that has a target, with it."""
    return [
        (int(token), int(target))
        for batch in batches
        for token, target in zip(batch.inputs["ids"].flatten(), batch.targets.flatten(), strict=True)
        if target != IGNORE
    ]


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=20),
    st.integers(4, 16),
    st.integers(0, 99),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_blocks_have_every_token_once_in_all_processes(
    lengths: list[int], limit: int, seed: int, epoch: int, world: int
) -> None:
    stream = stream_of(lengths, limit, seed)
    ranks = [list(Batches(stream, 3 * limit, seed, rank, world, True).epoch(epoch)) for rank in range(world)]
    assert len({len(batches) for batches in ranks}) == 1
    assert {batch.targets.shape[1] for batches in ranks for batch in batches} == {limit}
    values = stream.column.array.values.tolist()
    expected = Counter(zip(values[:-1], [END if value == START else value for value in values[1:]], strict=True))
    assert Counter(pairs_of([batch for batches in ranks for batch in batches])) == expected


def test_blocks_are_cut_elsewhere_in_every_epoch_and_come_in_another_order() -> None:
    stream = stream_of([1000], 16, seed=3)
    assert len({stream.offset(epoch) for epoch in range(20)}) > 8
    firsts = [next(Batches(stream, 64, 3, 0, 1, True).epoch(epoch)).inputs["ids"].tolist() for epoch in (0, 1, 0)]
    assert firsts[0] != firsts[1]
    assert firsts[0] == firsts[2]


def test_without_a_seed_the_text_is_in_order() -> None:
    batches = list(Batches(stream_of([30, 20], 8, None), 16, 0, 0, 1, False).epoch(5))
    inputs = [token for token, _ in pairs_of(batches)]
    assert inputs == stream_of([30, 20], 8, None).column.array.values[:-1].tolist()


def test_only_the_first_and_the_last_block_are_padded() -> None:
    stream = stream_of([999], 16, seed=3)
    padded = [
        int((row == IGNORE).sum()) for batch in Batches(stream, 64, 3, 0, 1, True).epoch(1) for row in batch.targets
    ]
    assert sum(count > 0 for count in padded) <= 2
    assert sum(padded) < 2 * 16


def test_resuming_is_counting() -> None:
    batches = Batches(stream_of([500], 8, 1), 32, 1, 0, 1, True)
    whole = list(batches.epoch(2))
    assert len(whole) == batches.steps(2)
    for start in (1, 7, len(whole)):
        rest = list(batches.epoch(2, start=start))
        assert all(torch.equal(a.inputs["ids"], b.inputs["ids"]) for a, b in zip(rest, whole[start:], strict=True))


# --- with a tokenizer ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab=300), DOCUMENTS, progress=False)


def open_documents(folder: Path, tokenizer: Tokenizer, split: str = "train", **settings: Any) -> Batches:
    for name in ("train", "valid"):
        (folder / f"{name}.txt").write_text("\n##\n".join(DOCUMENTS) + "\n")
    values: dict[str, Any] = {
        "task": "language",
        "path": str(folder),
        "cache": str(folder / "cache"),
        "separator": "##",
    }
    return open_batches(DataConfig(**values | {"max_length": 16, "batch_tokens": 64} | settings), tokenizer, split)


def test_every_token_is_a_target_once_in_an_epoch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    batches = open_documents(tmp_path, tokenizer)
    learned = Counter(target for _, target in pairs_of(list(batches.epoch(0))))
    expected = Counter(token for document in DOCUMENTS for token in [*tokenizer.encode(document), tokenizer.end])
    assert learned == expected
    valid = open_documents(tmp_path, tokenizer, "valid")
    text = [target for _, target in pairs_of(list(valid.epoch(3)))]
    assert text == [token for document in DOCUMENTS for token in [*tokenizer.encode(document), tokenizer.end]]


def test_the_document_mask_changes_where_a_document_begins(tmp_path: Path, tokenizer: Tokenizer) -> None:
    assert "documents" not in next(open_documents(tmp_path, tokenizer).epoch(0)).inputs
    for batch in open_documents(tmp_path, tokenizer, document_mask=True).epoch(0):
        ids, documents = batch.inputs["ids"], batch.inputs["documents"]
        changes = documents[:, 1:] != documents[:, :-1]
        real = batch.targets != IGNORE
        begins = (ids[:, 1:] == tokenizer.start) & real[:, 1:]
        ends = real[:, :-1] & ~real[:, 1:]  # padding is a document of its own
        assert torch.equal(changes, begins | ends)
        assert (documents[:, 1:] >= documents[:, :-1]).all()


@pytest.mark.parametrize("setting", [{"task": "masked"}, {"pack": False}, {"task": "chat"}])
def test_the_document_mask_is_refused_where_it_would_be_ignored(setting: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"data\.document_mask = true belongs to packed language modelling"):
        DataConfig(**{"task": "language", "document_mask": True, **setting})


def test_masked_blocks_restore_to_the_documents(tmp_path: Path, tokenizer: Tokenizer) -> None:
    batches = open_documents(tmp_path, tokenizer, "valid", task="masked", mask_rate=0.3)
    restored: list[int] = []
    for batch in batches.epoch(0):
        tokens = torch.where(batch.targets == IGNORE, batch.inputs["ids"], batch.targets)
        real = batch.inputs.get("real", torch.ones_like(tokens, dtype=torch.bool))
        restored += tokens[real].tolist()
        assert batch.tokens
    assert all(torch.equal(a.targets, b.targets) for a, b in zip(batches.epoch(0), batches.epoch(3), strict=True))
    framed = [[tokenizer.start, *tokenizer.encode(document), tokenizer.end] for document in DOCUMENTS]
    assert restored == [token for document in framed for token in document]


def test_a_block_that_fits_in_no_batch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"data\.batch_tokens = 8 cannot hold"):
        next(open_documents(tmp_path, tokenizer, batch_tokens=8).epoch(0))


@needs_shared
def test_wikitext_has_as_many_tokens_as_others_count(tmp_path: Path) -> None:
    config = DataConfig(task="language", path=str(SHARED / "wikitext-2"), separator="\n", cache=str(tmp_path))
    bare = tokenizers.Tokenizer(models.WordLevel({"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3}, unk_token="<unk>"))
    bare.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = Tokenizer(bare)
    counts = [open_batches(config, words, split) for split in ("train", "valid", "test")]
    assert [sum(batch.tokens for batch in batches.epoch(0)) for batches in counts] == [2_088_628, 217_646, 245_569]


# --- dialogues -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), max_size=200), st.integers(30, 50), st.integers(0, 9))
def test_packing_places_everything_once_in_bins_that_are_full_enough(
    lengths: list[int], capacity: int, seed: int
) -> None:
    sizes = np.array(lengths, np.int64)
    members, borders = pack_into_bins(sizes, capacity, seed)
    assert sorted(members.tolist()) == list(range(len(lengths)))
    fills = [int(sizes[members[a:b]].sum()) for a, b in itertools.pairwise(borders)]
    assert all(0 < fill <= capacity for fill in fills)
    assert sum(fill <= capacity // 2 for fill in fills) <= 1  # two such bins would have become one


def test_packing_wastes_little() -> None:
    sizes = np.random.default_rng(0).integers(20, 200, 5000)
    _, borders = pack_into_bins(sizes, 512, 0)
    assert sizes.sum() / (512 * (len(borders) - 1)) > 0.99


QUESTIONS = [(f"{' '.join(WORDS[: 1 + number % 9])}?", " ".join(WORDS[number % 5 :])) for number in range(50)]


def open_dialogues(folder: Path, tokenizer: Tokenizer, **settings: Any) -> Batches:
    lines = [json.dumps({"q": question, "a": answer}) for question, answer in QUESTIONS]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    values: dict[str, Any] = {"task": "chat", "path": str(folder), "cache": str(folder / "cache"), "source": "q"}
    values |= {"target": "a", "max_length": 120, "batch_tokens": 480}
    return open_batches(DataConfig(**values | settings), tokenizer)


def rendered(tokenizer: Tokenizer) -> list[tuple[list[int], list[int]]]:
    """Inputs and targets of each dialogue, made the slow way."""
    made = []
    for question, answer in QUESTIONS:
        dialogue = render(Dialogue((Message("user", question), Message("assistant", answer))), tokenizer)
        targets = [token if learn else IGNORE for token, learn in zip(dialogue.ids, dialogue.learn, strict=True)]
        made.append((dialogue.ids[:-1], targets[1:]))
    return made


def test_packed_dialogues_are_whole_and_apart(tmp_path: Path, tokenizer: Tokenizer) -> None:
    seen = []
    shared = 0
    for batch in open_dialogues(tmp_path, tokenizer).epoch(0):
        for ids, documents, targets in zip(*batch.inputs.values(), batch.targets, strict=True):
            numbers = documents.unique_consecutive().tolist()
            assert numbers == sorted(set(numbers))
            found = [(ids[documents == number].tolist(), targets[documents == number].tolist()) for number in numbers]
            if (ids[documents == numbers[-1]] == tokenizer.pad).all():
                assert set(found.pop()[1]) == {IGNORE}
            shared += len(found) > 1
            seen += found
    assert sorted(seen) == sorted(rendered(tokenizer))
    assert shared


def test_padded_dialogues_have_the_rendered_targets(tmp_path: Path, tokenizer: Tokenizer) -> None:
    seen = []
    for batch in open_dialogues(tmp_path, tokenizer, pack=False).epoch(0):
        assert list(batch.inputs) == ["ids"]
        for ids, targets in zip(batch.inputs["ids"], batch.targets, strict=True):
            length = int((ids != tokenizer.pad).sum())
            assert (targets[length:] == IGNORE).all()
            seen.append((ids[:length].tolist(), targets[:length].tolist()))
    assert sorted(seen) == sorted(rendered(tokenizer))


@pytest.mark.parametrize("packed", [True, False])
def test_too_long_dialogues_are_dropped_truncated_or_refused(
    tmp_path: Path, tokenizer: Tokenizer, packed: bool
) -> None:
    whole = rendered(tokenizer)
    limit = sorted(len(ids) for ids, _ in whole)[25]
    short = [pair for pair in whole if len(pair[0]) <= limit]
    dropped = open_dialogues(tmp_path, tokenizer, max_length=limit, pack=packed)
    count = len(whole) - len(short)
    assert dropped.report.lines() == [f"{count} examples of more than data.max_length = {limit} tokens dropped"]
    learned = sum(target != IGNORE for _, targets in short for target in targets)
    assert sum(batch.tokens for batch in dropped.epoch(0)) == learned
    cut = open_dialogues(tmp_path, tokenizer, max_length=limit, pack=packed, too_long="truncate")
    learned = sum(target != IGNORE for _, targets in whole for target in targets[:limit])
    assert sum(batch.tokens for batch in cut.epoch(0)) == learned
    with pytest.raises(UserError, match=r"train\.jsonl:\d+: \d+ tokens, but data\.max_length"):
        open_dialogues(tmp_path, tokenizer, max_length=limit, pack=packed, too_long="error")


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("phrasebook", "translation"),
        ("headlines", "translation"),
        ("stories", "language"),
        ("stories", "masked"),
        ("reviews", "classification"),
        ("instructions", "chat"),
        ("paraphrases", "similarity"),
    ],
)
def test_every_split_of_a_built_in_corpus_has_targets(
    tmp_path: Path, tokenizer: Tokenizer, name: str, task: Any
) -> None:
    config = DataConfig(task=task, corpus=name, size=100, max_length=512, cache=str(tmp_path))
    for split in open_corpus(config).splits:
        batches = open_batches(config, tokenizer, split)
        assert sum(batch.tokens for batch in batches.epoch(0)) > 0
    with pytest.raises(UserError, match=f"{name} has no split 'dev'; it has train, valid, test, compositional"):
        open_batches(config, tokenizer, "dev")


def test_a_built_in_corpus_for_another_task() -> None:
    with pytest.raises(UserError, match=r"is made for data\.task = 'language', not 'translation'"):
        open_corpus(DataConfig(corpus="stories"))
