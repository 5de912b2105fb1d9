"""Sub-word regularisation: other tokens in every copy, the same text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data.loader import open_batches
from clearhead.data.plan import randoms
from clearhead.data.store import RaggedArray
from clearhead.data.subwords import COPIES, halves_of, in_segmentations, split
from clearhead.text.tokenizer import Tokenizer, train_tokenizer

TEXTS = ["the station is near the stadium", "a stationary stage", "no status at all", "the old man is at the stage"] * 8


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab=320), TEXTS, progress=False)


def rows_of(array: RaggedArray) -> list[list[int]]:
    return [array.values[a:b].tolist() for a, b in zip(array.offsets[:-1], array.offsets[1:], strict=True)]


def encoded(tokenizer: Tokenizer) -> RaggedArray:
    rows = [[tokenizer.start, *ids] for ids in tokenizer.encode_batch(TEXTS)]
    values = np.array([number for row in rows for number in row] + [tokenizer.start], np.uint16)
    return RaggedArray(values, np.cumsum([0, *map(len, rows)]))


def test_a_token_is_its_two_halves(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.halves) > 20
    for number, (left, right) in tokenizer.halves.items():
        assert tokenizer.piece(number) == tokenizer.piece(left) + tokenizer.piece(right)


def test_every_segmentation_decodes_to_the_same_text(tokenizer: Tokenizer) -> None:
    array = in_segmentations(encoded(tokenizer), tokenizer, 0.3, (0, 0))
    rows = rows_of(array)
    assert [tokenizer.decode(row) for row in rows] == TEXTS * COPIES
    assert all(row[0] == tokenizer.start for row in rows)
    assert array.values[array.offsets[-1] :].tolist() == [tokenizer.start]
    assert len({tuple(row) for row in rows[:: len(TEXTS)]}) > 1


def test_segmentations_depend_on_the_key_and_the_rate_alone(tokenizer: Tokenizer) -> None:
    before = encoded(tokenizer)
    one, same, other = (in_segmentations(before, tokenizer, 0.3, key) for key in ((0, 0), (0, 0), (1, 0)))
    assert rows_of(one) == rows_of(same) != rows_of(other)
    assert rows_of(in_segmentations(before, tokenizer, 0.0, (0, 0))) == rows_of(before) * COPIES
    sizes = [int(in_segmentations(before, tokenizer, rate, (0, 0)).offsets[-1]) for rate in (0.0, 0.1, 0.5, 0.999999)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2] <= COPIES * sum(len(text) + 1 for text in TEXTS)


def split_one_by_one(rows: list[list[int]], tokenizer: Tokenizer, rate: float, key: tuple[int, ...]) -> list[list[int]]:
    """What `split` computes, in a loop over tokens: a random number for every token, used where one may be split."""
    after = [(row, number, True) for row, numbers in enumerate(rows) for number in numbers]
    tokens: list[tuple[int, int, bool]] = []
    part = 0
    while len(after) > len(tokens):
        tokens = after
        after = []
        for (row, number, new), draw in zip(tokens, randoms(len(tokens), *key, part).tolist(), strict=True):
            if new and number in tokenizer.halves and draw >> 32 < int(rate * 2**32):
                after += [(row, half, True) for half in tokenizer.halves[number]]
            else:
                after.append((row, number, False))
        part += 1
    return [[number for row, number, _ in tokens if row == each] for each in range(len(rows))]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_segmentations_are_those_of_a_loop_over_tokens(tokenizer: Tokenizer, rate: float) -> None:
    array = encoded(tokenizer)
    found = split(array, halves_of(tokenizer, rate), rate, (3, 1, 4))
    assert rows_of(found) == split_one_by_one(rows_of(array), tokenizer, rate, (3, 1, 4))
    assert found.values.dtype == array.values.dtype


def config_for(folder: Path, **settings: float) -> DataConfig:
    for side in ("en", "fr"):
        for name in ("train", "valid"):
            (folder / f"{name}.{side}").write_text("\n".join(TEXTS) + "\n")
    settings = {"batch_tokens": 256, **settings}
    return DataConfig(path=str(folder), source="en", target="fr", cache=str(folder / "cache"), **settings)


def test_training_batches_have_every_pair_in_several_segmentations(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = config_for(tmp_path, bpe_dropout=0.3)
    batches = open_batches(config, tokenizer, "train")
    sources, targets = [], []
    for batch in batches.epoch(0):
        sources += [tokenizer.decode(row) for row in batch.inputs["source"].tolist()]
        targets += [tokenizer.decode(row) for row in batch.inputs["target"].tolist()]
    assert sources == targets
    assert sorted(sources) == sorted(TEXTS * COPIES)
    plain = open_batches(config_for(tmp_path), tokenizer, "valid")
    valid = open_batches(config, tokenizer, "valid")
    assert [b.inputs["source"].tolist() for b in valid.epoch(0)] == [
        b.inputs["source"].tolist() for b in plain.epoch(0)
    ]


def test_a_copy_that_becomes_too_long_is_left_out(tmp_path: Path, tokenizer: Tokenizer) -> None:
    longest = max(map(len, tokenizer.encode_batch(TEXTS))) + 1
    config = config_for(tmp_path, bpe_dropout=0.5, max_length=longest)
    batches = list(open_batches(config, tokenizer, "train").epoch(0))
    assert all(batch.inputs["source"].shape[1] <= longest for batch in batches)
    assert 0 < sum(len(batch.targets) for batch in batches) < len(TEXTS) * COPIES


def test_what_has_no_merges_is_refused(tmp_path: Path) -> None:
    words = train_tokenizer(TokenizerConfig(kind="words"), TEXTS, progress=False)
    with pytest.raises(UserError, match=r"data.bpe_dropout = 0.3: .*; set tokenizer.kind = 'bpe', or leave it out"):
        open_batches(config_for(tmp_path, bpe_dropout=0.3), words, "train")
    with pytest.raises(UserError, match=r"data.bpe_dropout = 0.3 belongs to data.task = 'translation', not to 'chat'"):
        DataConfig(task="chat", bpe_dropout=0.3)
    with pytest.raises(UserError, match=r"data.bpe_dropout = 1.0: must be at least 0 and below 1"):
        DataConfig(bpe_dropout=1.0)
