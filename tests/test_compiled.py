"""A compiled model gives the same numbers under the same names."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import ModelConfig
from tiny_models import GRID, assert_same, decoder_only, encoder_decoder, encoder_only, random_ids


@pytest.mark.slow
@pytest.mark.parametrize("config", [GRID[0], GRID[-5]], ids=["paper", "modern"])
def test_compiled_is_eager(config: ModelConfig) -> None:
    source, target, real = random_ids(2, 7), random_ids(2, 6), torch.rand(2, 7) < 0.8
    cases = (
        (encoder_decoder(config, torch.float32), (source, target, real)),
        (decoder_only(config, torch.float32), (target,)),
        (encoder_only(config, torch.float32), (source, real)),
    )
    for model, inputs in cases:
        names, eager = list(model.state_dict()), model(*inputs)
        gradients = torch.autograd.grad(eager.sum(), list(model.parameters()))
        model.compile_blocks()
        compiled = model(*inputs)
        assert_same(compiled, eager)
        for a, b in zip(torch.autograd.grad(compiled.sum(), list(model.parameters())), gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        assert list(model.state_dict()) == names
        torch._dynamo.reset()


def test_a_block_is_one_graph() -> None:
    """No graph break: what is compiled is the whole block, for each family, with and without a mask."""
    source, target, real = random_ids(2, 7), random_ids(2, 6), torch.rand(2, 7) < 0.8
    for model, inputs in (
        (encoder_decoder(kv_heads=2, position="rotary"), (source, target, real)),
        (decoder_only(norm="rms", activation="swiglu"), (target,)),
    ):
        eager = model(*inputs)
        for block in model.blocks():
            block.compile(backend="eager", fullgraph=True)
        assert_same(model(*inputs), eager)
        torch._dynamo.reset()
