"""Tiny models over the full grid of options, for tests of identities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly, build_model
from clearhead.model.attention import Attention

VOCAB = 50
TINY = ModelConfig(vocab=VOCAB, d_model=16, d_ff=24, layers=2, heads=4, max_length=64, dropout=0.0)
OPTIONS: dict[str, tuple[Any, ...]] = {
    "norm": ("layer", "rms"),
    "norm_order": ("post", "pre"),
    "position": ("sinusoidal", "learned", "rotary", "none"),
    "activation": ("relu", "gelu", "gelu-tanh", "swiglu"),
    "kv_heads": (4, 2, 1),
}
TIES: tuple[Any, ...] = ("all", "output", "none")
# all combinations of the options above; the other options cycle, so that each value occurs in many combinations
GRID = [
    replace(
        TINY,
        **dict(zip(OPTIONS, values, strict=True)),
        bias=i % 2 == 0,
        tied=TIES[i % 3],
        scale_embedding=i % 5 != 0,
        head_bias=i % 4 == 0,
        embedding_norm=i % 7 == 0,
    )
    for i, values in enumerate(itertools.product(*OPTIONS.values()))
]
# options that only models of others have, in all families
GRID += [
    replace(TINY, position="rotary", head_channels=6, kv_heads=2, bias=False, qkv_bias=True, activation="silu"),
    replace(TINY, position="rotary", rotary_factor=8.0, norm_order="pre", norm="rms", activation="silu"),
    replace(TINY, position="rotary", rotary_factor=4.0, rotary_length=20, rotary_base=100.0, head_channels=8),
]
PRECISION = {torch.float32: 1e-5, torch.float64: 1e-10}


def name(config: ModelConfig) -> str:
    return "-".join(str(getattr(config, option)) for option in OPTIONS)


def shake(model: nn.Module) -> None:
    """Add noise to every parameter, so that no error hides behind a bias of 0 or a gain of 1."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))


def make(config: ModelConfig, dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    model = build_model(replace(config, **changes)).to(dtype).eval()
    shake(model)
    return model


def encoder_decoder(config: ModelConfig = TINY, dtype: torch.dtype = torch.float64, **changes: Any) -> EncoderDecoder:
    return make(config, dtype, family="encoder-decoder", **changes)


def decoder_only(config: ModelConfig = TINY, dtype: torch.dtype = torch.float64, **changes: Any) -> DecoderOnly:
    return make(config, dtype, family="decoder-only", **changes)


def encoder_only(config: ModelConfig = TINY, dtype: torch.dtype = torch.float64, **changes: Any) -> EncoderOnly:
    return make(config, dtype, family="encoder-only", **changes)


def random_ids(*shape: int) -> Tensor:
    return torch.randint(0, VOCAB, shape)


def all_real(ids: Tensor) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool)


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Assert equality within the precision of the dtype, relative to the largest value."""
    tolerance = PRECISION[expected.dtype]
    largest = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * largest)


@contextmanager
def observed_weights(model: nn.Module) -> Iterator[list[Tensor]]:
    """Make every attention spell out its sum; collect the weights it shows."""
    seen: list[Tensor] = []
    with ExitStack() as undo:
        for module in model.modules():
            if isinstance(module, Attention):
                hook = module.weights.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
                undo.callback(hook.remove)
        yield seen
