"""Dropout: none in evaluation, and each kind of it alone in training."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tiny_models import decoder_only, encoder_decoder, observed_weights, random_ids


@pytest.mark.parametrize("build", [encoder_decoder, decoder_only])
@torch.inference_mode()
def test_evaluation_is_independent_of_dropout(build: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    without = build(dropout=0.0)
    torch.manual_seed(0)
    dropped = build(dropout=0.5, attention_dropout=0.5, token_dropout=0.5)
    inputs = (random_ids(2, 5), random_ids(2, 5))[: 1 if build is decoder_only else 2]
    assert torch.equal(without(*inputs), dropped(*inputs))
    dropped.train()
    assert not torch.equal(dropped(*inputs), dropped(*inputs))


def test_each_kind_of_dropout_works_alone() -> None:
    ids = random_ids(2, 6)
    for changes in ({"attention_dropout": 0.5}, {"dropout": 0.5}, {"token_dropout": 0.5}):
        model = decoder_only(**changes).train()
        assert not torch.equal(model(ids), model(ids))
        with observed_weights(model):
            assert not torch.equal(model(ids), model(ids))


def test_token_dropout_drops_whole_tokens() -> None:
    model = decoder_only(token_dropout=0.5, position="none", dropout=0.0).train()
    seen: list[torch.Tensor] = []
    model.decoder.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    ids = random_ids(8, 20)
    model(ids)
    dropped = (seen[0] == 0).all(-1)
    assert 0.2 < dropped.float().mean() < 0.8
    assert torch.allclose(seen[0][~dropped], 2 * model.decoder.embedding(ids)[~dropped])
