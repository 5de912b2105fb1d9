"""LoRA: adapters start at zero, only they get gradients, and they merge into the same model."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import UserError
from clearhead.train.lora import add_lora, merge_lora
from tiny_models import assert_same, decoder_only, random_ids, shake


def test_adapters_start_as_nothing_and_merge_into_the_same_model() -> None:
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


def test_only_adapters_get_gradients() -> None:
    model = decoder_only()
    add_lora(model, rank=2, patterns="*.feed_forward.*")
    model(random_ids(2, 5)).square().sum().backward()
    assert all((p.grad is not None) == ("correction" in name) for name, p in model.named_parameters())


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"train\.lora_on = '\*\.querry'.*decoder\.blocks\.0\.attention\.query"):
        add_lora(decoder_only(), rank=2, patterns="*.querry")
