"""Batches: what they hold for each task, masking, and how much of them is padding."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data.batches import IGNORE, Batch, Masking, RandomKey, TokenColumn, pad_sentence_pairs
from clearhead.data.examples import texts_of
from clearhead.data.loader import open_batches
from clearhead.data.plan import PlannedBatch
from clearhead.data.sources import open_corpus
from clearhead.data.store import RaggedArray
from clearhead.text.tokenizer import Tokenizer, Tokenizers, train_tokenizer
from json_rows import LINES, open_rows, write
from real_corpora import SHARED, needs_shared


def test_batches_have_every_translation_pair_once(tmp_path: Path, tokenizer: Tokenizer) -> None:
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
    message = r"valid\.jsonl:3: label 'maybe' never appears in train, which has bad, good; fix"
    with pytest.raises(UserError, match=message):
        open_batches(config, tokenizer, "valid")
    write(tmp_path, [{"x": "the cat", "y": "good"}, {"x": "a mat", "y": "good"}])
    with pytest.raises(UserError, match="every example of train has the label good"):
        open_batches(config, tokenizer)
    (tmp_path / "valid.jsonl").unlink()
    write(tmp_path, [{"x": "the cat", "y": "good"}, {"x": "a mat", "y": "good"}, {"x": "a mat", "y": "bad"}])
    with pytest.raises(UserError, match=r"data\.hold_out takes the end of the file: shuffle its rows"):
        open_batches(replace(config, hold_out=0.4), tokenizer)


def test_batches_have_both_sentences_and_their_score(tmp_path: Path, tokenizer: Tokenizer) -> None:
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


def test_a_batch_without_any_negative(tokenizer: Tokenizer) -> None:
    def column(*lengths: int) -> TokenColumn:
        return TokenColumn(RaggedArray(np.arange(sum(lengths)), np.cumsum([0, *lengths])), tokenizer, limit=9)

    pairs = pad_sentence_pairs((column(3, 3), column(3, 3), column(0, 3)), np.ones(2, np.float32))
    for members, rows in (([0], 2), ([0, 1], 5)):
        batch = pairs.batch(PlannedBatch(np.array(members), (3, 3, 3)), RandomKey(0, 0, 0))
        assert batch.inputs["ids"].shape == batch.inputs["real"].shape == (rows, 3)


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


def test_masked_texts_restore_to_the_lines(tmp_path: Path, tokenizer: Tokenizer) -> None:
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


def test_a_moved_batch_has_all_its_tokens_on_the_device() -> None:
    batch = Batch({"ids": torch.zeros(2, 3)}, torch.tensor([1, IGNORE, 2]))
    assert batch.tokens == 2
    moved = batch.to("meta")
    assert moved.targets.device.type == moved.inputs["ids"].device.type == "meta"
    assert moved.tokens == 2
    assert batch.blank().tokens == 0


@needs_shared
@pytest.mark.long
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
