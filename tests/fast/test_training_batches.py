"""What a batch is padded with on a GPU, to have one of few shapes, changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import DataConfig, Recipe, TrainConfig
from clearhead.data.batches import IGNORE, Batch
from clearhead.fast.train import batches
from clearhead.fast.train.batches import fixed_positions, overwrite, rounded, shapes_of
from clearhead.train.loss import Objective
from tiny_models import decoder_only, encoder_decoder, random_ids


def objective_of(task: str, model: Any, **changes: Any) -> Objective:
    return Objective(model, Recipe(data=DataConfig(task=task), train=TrainConfig(**changes)))


def loss_and_gradients(objective: Objective, batch: Batch) -> list[Tensor]:
    loss = objective(batch)
    return [loss, *torch.autograd.grad(loss, list(objective.parameters()))]


def sentence_pairs(rows: int) -> Batch:
    source, target = random_ids(rows, 5), random_ids(rows, 4)
    return Batch({"source": source, "source_real": torch.rand(rows, 5) < 0.8, "target": target}, target.roll(-1, 1))


def first_rows(batch: Batch, rows: int) -> Batch:
    return Batch({name: t[:rows] for name, t in batch.inputs.items()}, batch.targets[:rows])


def test_blank_rows_change_nothing() -> None:
    """With which batches of 69 and 70 rows have the same shape, and one CUDA graph."""
    objective = objective_of("translation", encoder_decoder(), label_smoothing=0.1)
    whole = sentence_pairs(70)
    batch = first_rows(whole, 69)
    larger = rounded(batch)
    assert shapes_of(larger) == shapes_of(rounded(whole)) == shapes_of(whole) != shapes_of(batch)
    assert (larger.targets.size(0), larger.tokens, larger.real_tokens) == (70, batch.tokens, batch.real_tokens)
    assert rounded(first_rows(batch, 63)).targets.size(0) == 63  # one row would be more than 1/32
    for one, other in zip(loss_and_gradients(objective, larger), loss_and_gradients(objective, batch), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    pairs = Batch({"ids": random_ids(138, 5)}, torch.rand(69))
    assert rounded(pairs) is pairs  # similarities depend on all rows


@pytest.mark.parametrize("learned", [1.0, 0.3], ids=["all positions", "few positions"])
def test_positions_without_targets_change_nothing(learned: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "TARGET_SLOTS", 8)
    targets = random_ids(8, 6)
    targets[torch.arange(48).view(8, 6) >= 48 * learned] = IGNORE
    batch = Batch({"ids": random_ids(8, 6)}, targets)
    objective = objective_of("chat", decoder_only(), label_smoothing=0.1)
    expected = loss_and_gradients(objective, batch)
    positions = fixed_positions(batch)
    assert (positions is None) == (learned == 1.0)
    assert positions is None or positions.tolist()[:15] == list(range(15)), "15 targets, and one position more"
    assert positions is None or positions.numel() == 16
    objective.positions = fixed_positions
    for one, other in zip(loss_and_gradients(objective, batch), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_a_batch_is_overwritten_in_place() -> None:
    batch, other = sentence_pairs(3), sentence_pairs(3)
    addresses = [t.data_ptr() for t in (*batch.inputs.values(), batch.targets)]
    overwrite(batch, other)
    assert [t.data_ptr() for t in (*batch.inputs.values(), batch.targets)] == addresses
    assert torch.equal(batch.targets, other.targets)
    assert all(torch.equal(batch.inputs[name], other.inputs[name]) for name in other.inputs)
