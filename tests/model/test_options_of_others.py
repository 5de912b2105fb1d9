"""Options that only imported models have: refused where they mean nothing, and equal to their formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.config import ModelConfig, UserError
from fixed_states import fixed_state
from tiny_models import assert_same, decoder_only, encoder_only, random_ids


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rotary_factor": 2.0}, "model.rotary_factor = 2.0 needs model.position = 'rotary'"),
        ({"rotary_length": 20}, "model.rotary_length = 20 needs model.position = 'rotary'"),
        ({"position": "rotary", "rotary_factor": 0.5}, "model.rotary_factor = 0.5: must be at least 1"),
        ({"query_key_norm": True, "position": "rotary"}, "model.query_key_norm = True needs model.family"),
        ({"query_key_norm": True, "family": "decoder-only"}, "needs model.position = 'rotary', not 'sinusoidal'"),
        ({"qkv_bias": True}, "model.qkv_bias = True needs model.bias = False"),
        (
            {"head_activation": "relu", "family": "encoder-only"},
            "model.head_activation = 'relu' needs model.head_dense",
        ),
        ({"window": 4}, "model.window = 4 needs model.family = 'decoder-only'"),
        ({"head_channels": -1}, "model.head_channels = -1: must not be negative"),
        ({"head_channels": 5, "position": "rotary"}, "model.head_channels = 5 is odd"),
        ({"d_model": 10, "heads": 4}, "model.d_model = 10 is not divisible by model.heads = 4"),
    ],
)
def test_what_means_nothing_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ModelConfig(**settings)


def test_heads_of_any_size_fit_any_width() -> None:
    model = decoder_only(d_model=10, heads=3, kv_heads=1, head_channels=4, position="rotary")
    assert model(random_ids(2, 5)).shape == (2, 5, 50)


@torch.no_grad()
def test_with_norms_on_queries_and_keys_cached_is_full() -> None:
    model = decoder_only(position="rotary", query_key_norm=True, kv_heads=2, norm="rms")
    ids = random_ids(2, 9)
    logits, state = model.start(ids[:, :4])
    assert_same(logits, model(ids[:, :4])[:, -1])
    for t in range(4, 9):
        assert_same(model.step(ids[:, t : t + 1], state), model(ids[:, : t + 1])[:, -1])


@torch.no_grad()
def test_in_a_window_cached_is_full_and_far_tokens_change_nothing() -> None:
    model = decoder_only(position="rotary", window=3, layers=1)
    ids = random_ids(2, 9)
    logits, state = model.start(ids[:, :5])
    fixed = fixed_state(model, ids[:, :5], 16)
    assert_same(model.start(ids[:, :5], state=fixed)[0], logits)
    for t in range(5, 9):
        expected = model(ids[:, : t + 1])[:, -1]
        assert_same(model.step(ids[:, t : t + 1], state), expected)
        assert_same(model.step(ids[:, t : t + 1], fixed), expected)
    other = torch.cat([(ids[:, :6] + 1) % 50, ids[:, 6:]], dim=1)
    assert_same(model(other)[:, -1], model(ids)[:, -1])  # it attends to tokens 6, 7 and 8
    padded = torch.nn.functional.pad(ids, (2, 0))
    real = torch.arange(11).expand(2, -1) >= 2
    assert_same(model.start(padded, real)[0], model(ids)[:, -1])
    documents = torch.tensor([[0] * 4 + [1] * 5, [0] * 9])
    assert_same(model(ids, documents)[0, 4:], model(ids[:1, 4:])[0])


def test_norms_bring_queries_and_keys_to_one_scale() -> None:
    model = decoder_only(position="rotary", query_key_norm=True, norm="rms", norm_epsilon=1e-14)
    attention = model.decoder.blocks[0].attention
    seen = {}
    for name in ("query_norm", "key_norm"):
        norm = getattr(attention, name)
        norm.normalized.register_forward_hook(lambda _m, _i, output, name=name: seen.update({name: output}))
    model(random_ids(2, 5))
    for normalized in seen.values():
        assert normalized.shape == (2, 4, 5, 4)
        assert_same(normalized.square().mean(-1), torch.ones(2, 4, 5, dtype=torch.float64))


def test_the_activation_before_the_classes() -> None:
    settings = {"head": "classes", "classes": 3, "head_dense": True}
    model = encoder_only(head_activation="relu", **settings)
    pooled = model.hidden(random_ids(2, 5))
    head: Any = model.head
    assert_same(head(pooled), head.project(torch.relu(head.dense(pooled))))
