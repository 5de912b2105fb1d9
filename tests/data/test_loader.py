"""The loader: long examples, ranks, resuming, prefetching in the background."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import DataConfig, UserError
from clearhead.data.background import in_background
from clearhead.data.batches import IGNORE, Batch
from clearhead.data.loader import open_batches, prefetch
from clearhead.text.tokenizer import Tokenizer
from json_rows import LINES, open_rows, rows_of, write
from patience import PATIENCE
from properties import given, settings, st


def test_too_long_pairs_are_dropped_or_truncated(tmp_path: Path, tokenizer: Tokenizer) -> None:
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
    with pytest.raises(UserError, match="all 1 train examples have more than"):
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
    before = {*threading.enumerate()}
    items = in_background(iter(range(1000)), 2)
    assert next(items) == 0
    started = {*threading.enumerate()} - before
    assert [thread.name for thread in started] == ["prefetch_0"]
    items.close()  # type: ignore[attr-defined]
    for thread in started:
        thread.join(PATIENCE)
        assert not thread.is_alive()
