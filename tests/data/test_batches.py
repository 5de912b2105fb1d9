"""Batches: what they hold for each task, and plans that use every example once, on all ranks, with little padding."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data.background import in_background
from clearhead.data.batches import IGNORE, Batch, Masking, RandomKey
from clearhead.data.examples import texts_of
from clearhead.data.loader import Batches, open_batches, prefetch
from clearhead.data.plan import PlannedBatch, length_buckets, plan, randoms, shuffled
from clearhead.data.sources import open_corpus
from clearhead.text.tokenizer import Tokenizer, Tokenizers, train_tokenizer
from real_corpora import SHARED, needs_shared

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "red", "birds", "in", "an", "old", "tree"]
LINES = [" ".join(WORDS[start : start + size]) for start in range(9) for size in range(1, 7)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab=300), LINES, progress=False)


def write(folder: Path, rows: list[dict[str, Any]], split: str = "train") -> None:
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def open_rows(folder: Path, tokenizer: Tokenizer | Tokenizers, rows: list[dict[str, Any]], **settings: Any) -> Batches:
    write(folder, rows)
    return open_batches(DataConfig(path=str(folder), cache=str(folder / "cache"), **settings), tokenizer)


def rows_of(batches: list[Batch], name: str) -> list[list[int]]:
    return [row for batch in batches for row in batch.inputs[name].tolist()]


# --- plans -----------------------------------------------------------------------------------------------------------

LENGTHS: st.SearchStrategy[Any] = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.tuples(*[st.integers(1, 30)] * sides), min_size=1, max_size=150).map(np.array)
)


@given(LENGTHS, st.integers(90, 400), st.integers(0, 2**40), st.integers(0, 5), st.integers(1, 5))
def test_every_example_once_and_equal_counts(lengths: Any, budget: int, seed: int, epoch: int, world: int) -> None:
    buckets = length_buckets(lengths, budget, world)
    plans = [plan(buckets, budget, (seed, epoch), rank, world) for rank in range(world)]
    assert len({len(steps) for steps in plans}) == 1
    members = np.concatenate([rows.members for steps in plans for rows in steps])
    assert sorted(members.tolist()) == list(range(len(lengths)))
    for rows in itertools.chain(*plans):
        assert len(rows.members) * sum(rows.widths) <= budget
        assert (lengths[rows.members] <= rows.widths).all()
    for together in zip(*plans, strict=True):  # ranks work on equal shapes, so none waits long
        assert len({rows.widths for rows in together}) == 1
        sizes = [len(rows.members) for rows in together]
        assert max(sizes) - min(sizes) <= 1


def same(left: list[PlannedBatch], right: list[PlannedBatch]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(a.members, b.members) and a.widths == b.widths for a, b in zip(left, right, strict=True)
    )


def random_lengths(count: int, sides: int = 2) -> Any:
    return np.random.default_rng(0).integers(3, 40, (count, 1)) + np.random.default_rng(1).integers(
        0, 4, (count, sides)
    )


def test_a_plan_depends_on_its_key_alone() -> None:
    lengths = random_lengths(3000)
    buckets = length_buckets(lengths, 500)
    first = plan(buckets, 500, (1, 2))
    assert same(first, plan(length_buckets(lengths.copy(), 500), 500, (1, 2)))
    assert not same(first, plan(buckets, 500, (1, 3)))
    assert not same(first, plan(buckets, 500, (2, 2)))
    assert same(plan(buckets, 500, None), plan(buckets, 500, None))


def test_epochs_mix_examples_anew_and_lengths_are_not_sorted() -> None:
    lengths = random_lengths(3000)
    buckets = length_buckets(lengths, 500)
    together = [{frozenset(rows.members.tolist()) for rows in plan(buckets, 500, (0, epoch))} for epoch in range(2)]
    assert len(together[0] & together[1]) < 0.05 * len(together[0])
    widths = [sum(rows.widths) for rows in plan(buckets, 500, (0, 0))]
    assert abs(np.corrcoef(widths[:-1], widths[1:])[0, 1]) < 0.3


def test_few_shapes_the_same_in_every_epoch() -> None:
    lengths = random_lengths(30_000)
    buckets = length_buckets(lengths, 2000)
    shapes = [{(len(rows.members), rows.widths) for rows in plan(buckets, 2000, (0, epoch))} for epoch in range(2)]
    assert shapes[0] == shapes[1]
    assert len({widths for _, widths in shapes[0]}) == len(buckets) <= 64
    assert len(shapes[0]) <= 2 * len(buckets)


def test_random_numbers_never_change() -> None:
    # Numbers of today: a change of the generator would end the reproducibility of every run that there is.
    assert shuffled(8, 1, 2).tolist() == [5, 6, 3, 2, 1, 0, 4, 7]
    assert randoms(2, 3).tolist() == [1579948266424812280, 4368382809143759861]


def test_an_example_that_fits_in_no_batch() -> None:
    with pytest.raises(UserError, match=r"data\.batch_tokens = 20 cannot hold the longest example \(30 tokens"):
        plan(length_buckets(np.array([[15, 15]]), 20), 20, None)


@needs_shared
@pytest.mark.parametrize("name", ["multi30k", pytest.param("tatoeba-en-de", marks=pytest.mark.slow)])
def test_at_least_95_percent_are_real_tokens(name: str, tmp_path: Path) -> None:
    config = DataConfig(path=str(SHARED / name), source="en", target="de", cache=str(tmp_path))
    pairs = itertools.islice(open_corpus(config).read("train"), 20_000)
    texts = [text for pair in pairs for text in texts_of(pair)]
    trained = train_tokenizer(TokenizerConfig(vocab=8000), texts, progress=False)
    batches = open_batches(config, trained)
    real, padded = 0, 0
    for batch in batches.epoch(0):
        real += int(batch.inputs["source_real"].sum()) + batch.tokens
        padded += batch.inputs["source"].numel() + batch.targets.numel()
        assert batch.inputs["source"].numel() + batch.targets.numel() <= config.batch_tokens
    assert real / padded >= 0.95


# --- what a batch holds ----------------------------------------------------------------------------------------------


def test_translation(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"s": line, "t": line[::-1]} for line in LINES]
    batches = list(open_rows(tmp_path, tokenizer, rows, source="s", target="t", batch_tokens=200).epoch(0))
    seen = []
    for batch in batches:
        assert list(batch.inputs) == ["source", "source_real", "target"]
        source, real, target = batch.inputs.values()
        for row in range(len(source)):
            ids = source[row][real[row]].tolist()
            length = int((batch.targets[row] != IGNORE).sum())
            assert ids[-1] == tokenizer.end
            assert target[row, 0] == tokenizer.start
            assert target[row, 1:length].tolist() == batch.targets[row, : length - 1].tolist()
            assert batch.targets[row, length - 1] == tokenizer.end
            assert (target[row, length:] == tokenizer.pad).all()
            assert (source[row][~real[row]] == tokenizer.pad).all()
            seen.append((tokenizer.decode(ids), tokenizer.decode(batch.targets[row, :length].tolist())))
    assert sorted(seen) == sorted((row["s"], row["t"]) for row in rows)
    assert sum(batch.tokens for batch in batches) == sum(len(tokenizer.encode(row["t"])) + 1 for row in rows)


def test_separate_vocabularies(tmp_path: Path, tokenizer: Tokenizer) -> None:
    letters = train_tokenizer(TokenizerConfig(kind="characters"), LINES, progress=False)
    rows = [{"s": line, "t": line} for line in LINES]
    batches = open_rows(tmp_path, Tokenizers(letters, tokenizer), rows, source="s", target="t", batch_tokens=300)
    for batch in batches.epoch(0):
        assert letters.decode(batch.inputs["source"][0].tolist()) == tokenizer.decode(
            batch.inputs["target"][0].tolist()
        )


def test_language_without_packing(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"x": line} for line in LINES]
    batches = list(
        open_rows(tmp_path, tokenizer, rows, task="language", text="x", pack=False, batch_tokens=99).epoch(0)
    )
    seen = []
    for ids, targets in ((batch.inputs["ids"], batch.targets) for batch in batches):
        assert (ids[:, 0] == tokenizer.start).all()
        seen += [tokenizer.decode(row[row != IGNORE].tolist()) for row in targets]
        assert ((targets == tokenizer.end).sum(dim=1) == 1).all()
    assert sorted(seen) == sorted(LINES)


def test_classification_and_labels(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"x": line, "y": ["short", "long"][len(line) > 12]} for line in LINES]
    batches = open_rows(tmp_path, tokenizer, rows, task="classification", text="x", label="y", batch_tokens=99)
    assert batches.labels == ("long", "short")
    seen = []
    for batch in batches.epoch(0):
        assert batch.targets.dtype == torch.int64
        assert batch.tokens == len(batch.targets)
        assert (batch.inputs["ids"][:, 0] == tokenizer.start).all()
        for ids, real, label in zip(batch.inputs["ids"], batch.inputs["real"], batch.targets, strict=True):
            assert ids[real][-1] == tokenizer.end
            seen.append((tokenizer.decode(ids[real].tolist()), batches.labels[int(label)]))
    assert sorted(seen) == sorted((row["x"], row["y"]) for row in rows)


def test_a_label_never_seen_in_training(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"x": "the cat", "y": "good"}, {"x": "a mat", "y": "bad"}])
    write(tmp_path, [{"x": "the cat", "y": "bad"}, {"x": " ", "y": "bad"}, {"x": "a mat", "y": "maybe"}], "valid")
    config = DataConfig(path=str(tmp_path), cache=str(tmp_path / "cache"), task="classification", text="x", label="y")
    with pytest.raises(UserError, match=r"valid\.jsonl:3: label 'maybe' never appears in train, which has bad, good"):
        open_batches(config, tokenizer, "valid")
    write(tmp_path, [{"x": "the cat", "y": "good"}, {"x": "a mat", "y": "good"}])
    with pytest.raises(UserError, match="all of train is good"):
        open_batches(config, tokenizer)


def test_similarity(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows: list[dict[str, Any]] = [{"a": line, "b": line[::-1], "s": n % 5} for n, line in enumerate(LINES)]
    batches = open_rows(
        tmp_path, tokenizer, rows, task="similarity", text="a", other="b", label="s", best_score=4.0, batch_tokens=300
    )
    seen = []
    for batch in batches.epoch(0):
        count = len(batch.targets)
        assert batch.inputs["ids"].shape[0] == batch.inputs["real"].shape[0] == 2 * count
        assert batch.targets.dtype == torch.float32
        assert batch.tokens == count
        texts = [tokenizer.decode(ids.tolist()) for ids in batch.inputs["ids"]]
        seen += list(zip(texts[:count], texts[count:], batch.targets.tolist(), strict=True))
    assert sorted(seen) == sorted((row["a"], row["b"], row["s"] / 4) for row in rows)


def test_similarity_with_negatives(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = DataConfig(corpus="paraphrases", size=200, task="similarity", cache=str(tmp_path), batch_tokens=2000)
    examples: dict[str, Any] = {texts_of(example)[0]: example for example in open_corpus(config).read("train")}
    for batch in open_batches(config, tokenizer).epoch(0):
        texts = [tokenizer.decode(ids.tolist()) for ids in batch.inputs["ids"]]
        count = len(batch.targets)
        expected = [examples[text] for text in texts[:count]]
        assert texts[count : 2 * count] == [example.second for example in expected]
        negatives = [example.negative for example in expected if example.negative]
        assert texts[2 * count :] == negatives
        assert negatives


# --- masked ----------------------------------------------------------------------------------------------------------


def test_masking_hides_80_10_10_of_15_percent(tokenizer: Tokenizer) -> None:
    special = [tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.mask, tokenizer.unknown, tokenizer.user]
    ordinary = np.setdiff1d(np.arange(tokenizer.vocab), special)[10:]
    ids = np.resize(np.concatenate([ordinary, special]), (400, 1000))
    real = np.ones_like(ids, bool)
    real[:, 900:] = False
    hidden, targets = Masking(tokenizer, 0.15).apply(ids, real, RandomKey(0, 0, 0))
    chosen = targets != IGNORE
    can = ~np.isin(ids, special) & real
    assert not chosen[~can].any()
    assert (targets[chosen] == ids[chosen]).all()
    assert (hidden[~chosen] == ids[~chosen]).all()
    assert abs(chosen[can].mean() - 0.15) < 0.003
    masked, kept = hidden[chosen] == tokenizer.mask, hidden[chosen] == ids[chosen]
    assert abs(masked.mean() - 0.8) < 0.01
    assert abs(kept.mean() - 0.1) < 0.01
    others = hidden[chosen][~masked & ~kept]
    assert not np.isin(others, special).any()
    assert len(np.unique(others)) > 0.95 * len(ordinary)  # any word may come


def test_masks_depend_on_seed_epoch_and_batch(tokenizer: Tokenizer) -> None:
    ids = np.full((4, 100), tokenizer.encode("cat")[0])
    real = np.ones_like(ids, bool)
    masking = Masking(tokenizer, 0.15)
    keys = [RandomKey(0, 0, 0), RandomKey(1, 0, 0), RandomKey(0, 1, 0), RandomKey(0, 0, 1)]
    made = [masking.apply(ids, real, key)[1] for key in keys]
    assert np.array_equal(made[0], masking.apply(ids, real, keys[0])[1])
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(made, 2))


def test_masked_texts(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"x": line} for line in LINES]
    settings: dict[str, Any] = {"task": "masked", "text": "x", "pack": False, "batch_tokens": 200, "mask_rate": 0.5}
    batches = open_rows(tmp_path, tokenizer, rows, **settings)
    seen = []
    for batch in batches.epoch(3):
        ids, real = batch.inputs["ids"], batch.inputs["real"]
        assert (ids[:, 0] == tokenizer.start).all()
        restored = torch.where(batch.targets == IGNORE, ids, batch.targets)
        seen += [tokenizer.decode(row[there].tolist()) for row, there in zip(restored, real, strict=True)]
    assert sorted(seen) == sorted(LINES)


# --- too long, ranks, resuming, prefetching --------------------------------------------------------------------------


def test_too_long(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"s": "cat", "t": "mat"}, {"s": "cat " * 30, "t": "a"}, {"s": "a", "t": "mat " * 30}]
    settings: dict[str, Any] = {"source": "s", "target": "t", "max_length": 8, "batch_tokens": 64}
    dropped = open_rows(tmp_path, tokenizer, rows, **settings)
    assert dropped.report.lines() == ["2 examples of more than data.max_length = 8 tokens dropped"]
    assert sum(len(batch.targets) for batch in dropped.epoch(0)) == 1
    cut = open_rows(tmp_path, tokenizer, rows, **settings, too_long="truncate")
    assert cut.report.lines() == ["2 examples of more than data.max_length = 8 tokens truncated"]
    batches = list(cut.epoch(0))
    for source in rows_of(batches, "source"):
        assert source.count(tokenizer.end) == 1  # a truncated source still ends with [end]
    long = next(row for batch in batches for row in batch.targets.tolist() if IGNORE not in row and len(row) == 8)
    assert tokenizer.end not in long  # a shortened target does not pretend to end
    with pytest.raises(UserError, match=r"train\.jsonl:2: 3\d tokens, but data\.max_length = 8; .*\(2 are too long\)"):
        open_rows(tmp_path, tokenizer, rows, **settings, too_long="error")
    with pytest.raises(UserError, match="all 1 train examples of more than"):
        open_rows(tmp_path, tokenizer, rows[1:2], **settings)


@pytest.mark.parametrize("task", ["translation", "language", "masked", "classification", "similarity"])
def test_ranks_share_an_epoch_and_can_resume(tmp_path: Path, tokenizer: Tokenizer, task: str) -> None:
    write(tmp_path, [{"s": line, "t": f"x {line}", "y": str(len(line) % 2)} for line in LINES])
    names = {
        "translation": {"source": "s", "target": "t"},
        "classification": {"text": "s", "label": "y"},
        "similarity": {"text": "s", "other": "t"},
    }.get(task, {"text": "s"})
    values: dict[str, Any] = {"task": task, "path": str(tmp_path), "cache": str(tmp_path / "cache"), **names}
    config = DataConfig(**values, batch_tokens=100, max_length=20)
    alone = open_batches(config, tokenizer, seed=5)
    whole = list(alone.epoch(1))
    assert len(whole) == alone.steps(1)
    for step in (0, 1, len(whole) - 1, len(whole)):
        rest = list(alone.epoch(1, start=step))
        assert len(rest) == len(whole) - step
        for a, b in zip(rest, whole[step:], strict=True):
            assert torch.equal(a.targets, b.targets)
            assert all(torch.equal(a.inputs[name], b.inputs[name]) for name in a.inputs)
    ranks = [open_batches(config, tokenizer, seed=5, rank=rank, world=3) for rank in range(3)]
    assert len({len(list(rank.epoch(1))) for rank in ranks} | {rank.steps(1) for rank in ranks}) == 1
    if task != "masked":  # there, chance decides how many are hidden
        assert sum(batch.tokens for rank in ranks for batch in rank.epoch(1)) == sum(batch.tokens for batch in whole)


def test_a_rank_without_examples_gets_nothing_to_learn(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"s": line, "t": line} for line in LINES[:3]]
    write(tmp_path, rows)
    config = DataConfig(path=str(tmp_path), cache=str(tmp_path / "cache"), source="s", target="t", batch_tokens=40)
    ranks = [list(open_batches(config, tokenizer, rank=rank, world=4).epoch(0)) for rank in range(4)]
    assert len({len(batches) for batches in ranks}) == 1
    blank = [batch for batches in ranks for batch in batches if batch.tokens == 0]
    assert blank
    assert all((batch.targets == IGNORE).all() and len(batch.targets) == 1 for batch in blank)
    assert sum(len(batch.targets) for batches in ranks for batch in batches if batch.tokens) == 3


def test_other_splits_are_never_shuffled(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"s": line, "t": line} for line in LINES])
    write(tmp_path, [{"s": line, "t": line} for line in LINES], "valid")
    config = DataConfig(path=str(tmp_path), cache=str(tmp_path / "cache"), source="s", target="t", batch_tokens=100)
    valid = open_batches(config, tokenizer, "valid", seed=1)
    assert rows_of(list(valid.epoch(0)), "source") == rows_of(list(valid.epoch(7)), "source")
    train = open_batches(config, tokenizer, "train", seed=1)
    assert rows_of(list(train.epoch(0)), "source") != rows_of(list(train.epoch(7)), "source")


def test_moving_a_batch() -> None:
    batch = Batch({"ids": torch.zeros(2, 3)}, torch.tensor([1, IGNORE, 2]))
    assert batch.tokens == 2
    moved = batch.to("meta")
    assert moved.targets.device.type == moved.inputs["ids"].device.type == "meta"
    assert moved.tokens == 2
    assert batch.blank().tokens == 0


def test_prefetch_gives_the_same_batches() -> None:
    batches = [Batch({"ids": torch.full((1, 2), number)}, torch.zeros(1)) for number in range(9)]
    assert [int(batch.inputs["ids"][0, 0]) for batch in prefetch(iter(batches), "cpu")] == list(range(9))


@given(st.lists(st.integers()), st.integers(1, 4))
@settings(max_examples=30)
def test_work_in_the_background(items: list[int], ahead: int) -> None:
    assert list(in_background(iter(items), ahead)) == items


def test_background_errors_come_to_the_foreground() -> None:
    def failing() -> Any:
        yield 1
        raise UserError("the disk is gone")

    items = in_background(failing(), 2)
    assert next(items) == 1
    with pytest.raises(UserError, match="the disk is gone"):
        next(items)


def test_who_stops_early_leaves_no_thread_behind() -> None:
    import threading

    before = threading.active_count()
    items = in_background(iter(range(1000)), 2)
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "prefetch":
            thread.join(10)
    assert threading.active_count() == before
