"""Averages of weights: what they compute, and that checkpoints keep them."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import TrainConfig
from clearhead.train.average import WeightAverage
from clearhead.train.checkpoint import model_tensors
from tiny_models import decoder_only, shake


def test_the_running_average_forgets_slowly() -> None:
    model, average = decoder_only(), WeightAverage(TrainConfig(average="ema", ema=0.5))
    with torch.no_grad():
        for value in (0.0, 1.0, 1.0, 1.0):
            model.head.project.weight.fill_(value)
            average.after_step(model, 1 - average.decay_at(1000))
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
        average.after_step(model, 1 - average.decay_at(step))
        average.after_evaluation(model)
    again = WeightAverage(TrainConfig(average=kind))
    again.restore(average.tensors(), model)
    for name, t in average.weights(model).items():
        assert torch.equal(again.weights(model)[name], t)
    if kind == "none":
        assert all(torch.equal(t, model_tensors(model)[name]) for name, t in average.weights(model).items())
