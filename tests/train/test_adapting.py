"""Averages and low-rank corrections: what they compute, and that nothing else changes."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import TrainConfig, UserError
from clearhead.train.average import WeightAverage
from clearhead.train.checkpoint import model_tensors
from clearhead.train.lora import add_lora, merge_lora
from tiny_models import assert_same, decoder_only, random_ids, shake


def test_corrections_start_as_nothing_and_merge_into_the_same_model() -> None:
    model, ids = decoder_only(), random_ids(2, 5)
    before, names = model(ids), list(model.state_dict())
    add_lora(model, rank=2, patterns="*.query *.value")
    assert torch.equal(model(ids), before)
    learning = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(learning) == 2 * 2 * 2  # two blocks, two matrices, A and B
    assert all("correction" in name for name in learning)
    shake(torch.nn.ParameterList(p for p in model.parameters() if p.requires_grad))
    corrected = model(ids)
    assert not torch.allclose(corrected, before)
    merge_lora(model)
    assert_same(model(ids), corrected)
    assert list(model.state_dict()) == names


def test_only_corrections_get_gradients() -> None:
    model = decoder_only()
    add_lora(model, rank=2, patterns="*.feed_forward.*")
    model(random_ids(2, 5)).square().sum().backward()
    assert all((p.grad is not None) == ("correction" in name) for name, p in model.named_parameters())


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"train\.lora_on = '\*\.querry'.*decoder\.blocks\.0\.attention\.query"):
        add_lora(decoder_only(), rank=2, patterns="*.querry")


def test_the_running_average_forgets_slowly() -> None:
    model, average = decoder_only(), WeightAverage(TrainConfig(average="ema", ema=0.5))
    with torch.no_grad():
        for value in (0.0, 1.0, 1.0, 1.0):
            model.head.project.weight.fill_(value)
            average.after_step(model, step=1000)
    name = "decoder.embedding.weight"
    assert average.weights(model)[name].mean().item() == pytest.approx(0.875)
    with average.applied_to(model):
        assert model.head.project.weight.mean().item() == pytest.approx(0.875)
    assert (model.head.project.weight == 1).all()


def test_the_average_of_the_last_ones_is_their_mean() -> None:
    model, average = decoder_only(), WeightAverage(TrainConfig(average="last", average_last=2))
    with torch.no_grad():
        for value in (9.0, 1.0, 2.0):
            model.head.project.weight.fill_(value)
            average.after_evaluation(model)
    assert (average.weights(model)["decoder.embedding.weight"] == 1.5).all()


@pytest.mark.parametrize("kind", ["none", "ema", "last"])
def test_a_checkpoint_remembers_the_average(kind: str) -> None:
    model, average = decoder_only(), WeightAverage(TrainConfig(average=kind))
    for step in range(3):
        shake(model)
        average.after_step(model, step)
        average.after_evaluation(model)
    again = WeightAverage(TrainConfig(average=kind))
    again.restore(average.tensors(), model)
    for name, t in average.weights(model).items():
        assert torch.equal(again.weights(model)[name], t)
    if kind == "none":
        assert all(torch.equal(t, model_tensors(model)[name]) for name, t in average.weights(model).items())
