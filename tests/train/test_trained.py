"""The parameters that are estimated to be trained are those that training prepares, and so is their memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.config import Recipe, UserError
from clearhead.train.cost import BatchShape, memory_lines
from clearhead.train.run import initial_state
from clearhead.train.trained import estimate_counts
from run_folders import changed

SETTINGS: list[dict[str, Any]] = [
    {},
    {"lora": 3},
    {"lora": 3, "lora_on": "*.feed_forward.* *.embedding"},
    {"lora": 3, "lora_on": "*"},
    {"lora": 3, "lora_on": "*", "freeze": "encoder.* *.embedding.*"},
    {"freeze": "encoder.*"},
]


@pytest.mark.parametrize("tied", ["all", "none"])
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_gradients_and_optimiser_state_are_those_of_the_trained_parameters(
    recipe: Recipe, settings: dict[str, Any], optimiser: str, tied: Any
) -> None:
    recipe = changed(recipe, optimiser=optimiser, **settings)
    recipe = replace(recipe, model=replace(recipe.model, vocab=50, source_vocab=50, tied=tied))
    state = initial_state(recipe)
    parameters = list(state.model.parameters())
    trained = [p for p in parameters if p.requires_grad]
    counts = estimate_counts(recipe)
    assert (counts.stored, counts.trained) == (sum(p.numel() for p in parameters), sum(p.numel() for p in trained))
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    for each in state.optimisers:
        each.step()
    averages = [
        sum(t.nbytes for of_one in each.state.values() for name, t in of_one.items() if name != "step")
        for each in state.optimisers
    ]
    weights, gradients, *others = [line.value for line in memory_lines(recipe.model, BatchShape(0, 0), counts)]
    assert (weights, gradients) == (sum(p.nbytes for p in parameters), sum(p.nbytes for p in trained))
    assert [size for size in others if size] == averages


def test_a_model_that_pytorch_cannot_address_gets_a_sentence(recipe: Recipe) -> None:
    wild = replace(changed(recipe, lora=8), model=replace(recipe.model, d_model=10**11))
    with pytest.raises(UserError, match=r"parameters is too large; make it smaller \(model\.d_model"):
        estimate_counts(wild)
