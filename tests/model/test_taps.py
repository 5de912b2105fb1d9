"""Every intermediate has a name; looking changes nothing, replacing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.model import attention
from clearhead.model.attention import Attention
from clearhead.model.norm import LayerNorm, RMSNorm
from tiny_models import assert_same, decoder_only, encoder_decoder, encoder_only, random_ids

B, T, S, D, H, G, K, F, V = 2, 5, 6, 16, 4, 2, 4, 24, 50
NAMES = {  # the paper's words, and where each of them lives
    "decoder.embedding": (B, T, D),
    "decoder.position": (T, D),
    "decoder.blocks.0.attention.queries": (B, H, T, K),
    "decoder.blocks.0.attention.keys": (B, G, T, K),
    "decoder.blocks.0.attention.values": (B, G, T, K),
    "decoder.blocks.0.attention.scores": (B, H, T, T),
    "decoder.blocks.0.attention.weights": (B, H, T, T),
    "decoder.blocks.0.attention.head_outputs": (B, H, T, K),
    "decoder.blocks.0.attention": (B, T, D),
    "decoder.blocks.0.attention_add_norm": (B, T, D),
    "decoder.blocks.0.attention_add_norm.norm.normalized": (B, T, D),
    "decoder.blocks.0.cross_attention.queries": (B, H, T, K),
    "decoder.blocks.0.cross_attention.keys": (B, G, S, K),
    "decoder.blocks.0.cross_attention.weights": (B, H, T, S),
    "decoder.blocks.0.cross_attention_add_norm": (B, T, D),
    "decoder.blocks.0.feed_forward.inner": (B, T, F),
    "decoder.blocks.0.feed_forward": (B, T, D),
    "decoder.blocks.0.feed_forward_add_norm": (B, T, D),
    "decoder.blocks.1": (B, T, D),
    "encoder.blocks.1.attention.weights": (B, H, S, S),
    "head.logits": (B, T, V),
}


def observe(model: nn.Module, names: dict[str, Any] | list[str]) -> dict[str, Tensor]:
    seen: dict[str, Tensor] = {}
    for name in names:
        model.get_submodule(name).register_forward_hook(lambda _m, _i, output, name=name: seen.update({name: output}))
    return seen


@torch.inference_mode()
def test_every_intermediate_has_a_name_and_its_shape() -> None:
    model, inputs = encoder_decoder(kv_heads=G), (random_ids(B, S), random_ids(B, T))
    unobserved = model(*inputs)
    seen = observe(model, NAMES)
    assert_same(model(*inputs), unobserved)
    assert {name: tuple(seen[name].shape) for name in NAMES} == NAMES


@pytest.mark.parametrize("short", [0, 512], ids=["fused", "spelled out"])
def test_observing_changes_no_bit_and_computes_scores_once(monkeypatch: pytest.MonkeyPatch, short: int) -> None:
    """With dropout, too: observing draws no random numbers."""
    monkeypatch.setattr(attention, "SHORT_ATTENTION_PAIRS", short)
    weigh, calls = Attention.weigh, []

    def counted(*given: Any) -> Any:
        calls.append(1)
        return weigh(*given)

    monkeypatch.setattr(Attention, "weigh", counted)
    model, inputs = encoder_decoder(kv_heads=G, attention_dropout=0.3).train(), (random_ids(B, S), random_ids(B, T))
    torch.manual_seed(0)
    unobserved = model(*inputs)
    assert len(calls) == (6 if short else 0)
    seen = observe(model, NAMES)
    torch.manual_seed(0)
    calls.clear()
    assert torch.equal(model(*inputs), unobserved)
    assert seen.keys() == NAMES.keys()
    assert len(calls) == (6 if short else 3)  # of 6 attentions, 3 are observed


@torch.inference_mode()
def test_weights_are_probabilities_and_the_future_has_exactly_none() -> None:
    model, ids = decoder_only(), random_ids(B, T)
    seen = observe(model, ["decoder.blocks.0.attention.weights", "decoder.blocks.1.attention.weights"])
    model(ids)
    for weights in seen.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T, dtype=torch.float64))
        assert (weights.triu(1) == 0).all()
        assert (weights.tril() > 0).sum() == B * H * T * (T + 1) / 2


@torch.inference_mode()
def test_queries_and_keys_explain_the_scores() -> None:
    model, ids, where = decoder_only(position="rotary"), random_ids(B, T), "decoder.blocks.1.attention"
    names = [f"{where}.{name}" for name in ("queries", "keys", "values", "scores", "weights", "head_outputs")]
    seen = observe(model, names)
    model(ids)
    queries, keys, values, scores, weights, outputs = (seen[name] for name in names)
    assert_same(scores, queries @ keys.mT / 2)  # sqrt(K) = 2
    assert_same(outputs, weights @ values)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "head.logits"])
@torch.inference_mode()
def test_any_of_them_can_be_replaced(name: str) -> None:
    model, inputs = encoder_decoder(kv_heads=G), (random_ids(B, S), random_ids(B, T))
    before = model(*inputs)

    def patch(change: Callable[[Tensor], Tensor]) -> Tensor:
        handle = model.get_submodule(name).register_forward_hook(lambda _m, _i, output: change(output))
        after = model(*inputs)
        handle.remove()
        return after

    assert_same(patch(lambda t: t.clone()), before)
    assert not torch.allclose(patch(lambda t: t + torch.randn_like(t)), before)
    assert torch.equal(model(*inputs), before)  # and the model is whole again


@torch.inference_mode()
def test_knocking_out_one_head_is_zeroing_its_columns() -> None:
    model, ids = encoder_only(), random_ids(B, T)
    attention = model.encoder.blocks[0].attention

    def knock_out(_module: nn.Module, _inputs: Any, heads: Tensor) -> Tensor:
        return heads * (torch.arange(H) != 2)[:, None, None]

    handle = attention.head_outputs.register_forward_hook(knock_out)
    patched = model(ids)
    handle.remove()
    attention.out.weight[:, 2 * K : 3 * K] = 0
    assert_same(patched, model(ids))


def test_gradients_can_be_observed_too() -> None:
    model, seen = decoder_only(), []
    attention = model.decoder.blocks[0].attention
    attention.weights.register_full_backward_hook(lambda _module, _inputs, outputs: seen.append(outputs[0]))
    model(random_ids(B, T)).square().sum().backward()
    assert seen[0].shape == (B, H, T, T)
    assert seen[0].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", [LayerNorm(64, 1e-5), RMSNorm(64, 1e-5)])
def test_observing_a_norm_does_not_cost_precision(norm: LayerNorm | RMSNorm, dtype: torch.dtype) -> None:
    x = (300 * torch.randn(4, 64)).to(dtype)
    precise, half = norm.float()(x.float()), norm.to(dtype)
    fused_error = (half(x).float() - precise).abs().max()
    handle = half.normalized.register_forward_hook(lambda _module, _inputs, _output: None)
    observed_error = (half(x).float() - precise).abs().max()
    handle.remove()
    assert observed_error <= 2 * fused_error


@torch.inference_mode()
def test_observing_while_decoding_shows_each_step() -> None:
    model, ids = decoder_only(), random_ids(B, T)
    _, state = model.start(ids)
    seen = observe(model, ["decoder.blocks.0.attention.weights"])
    model.step(random_ids(B, 1), state)
    assert seen["decoder.blocks.0.attention.weights"].shape == (B, H, 1, T + 1)
