"""A compiled model gives the same numbers under the same names, for any length."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from clearhead.config import ModelConfig, Recipe, TrainConfig
from clearhead.data.batches import Batch
from clearhead.device import Machine, explain_compiling
from clearhead.train.run import initial_state
from clearhead.train.step import backpropagate, compile_for_all_sizes
from fixed_states import fixed_state
from tiny_models import TINY, assert_same, decoder_only, encoder_decoder, encoder_only, random_ids

MODERN = replace(TINY, norm="rms", norm_order="pre", position="rotary", activation="swiglu", kv_heads=2, bias=False)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("config", [TINY, MODERN], ids=["paper", "modern"])
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


def test_blocks_are_compiled_once_for_all_shapes() -> None:
    counter, model = CompileCounter(), decoder_only()
    for block in model.blocks():
        block.compile(dynamic=True, backend=counter)
    for shape in ((2, 3), (4, 7), (3, 9), (5, 5)):
        model(random_ids(*shape))
    assert counter.frame_count == 1  # both blocks share it
    torch._dynamo.reset()


@pytest.mark.parametrize("first", [(11, 11, 11), (11, 12, 11), (12, 12, 11)], ids=str)
def test_blocks_are_compiled_once_though_the_first_batch_has_equal_sizes(first: tuple[int, int, int]) -> None:
    recipe = Recipe(model=replace(TINY, dropout=0.1), train=TrainConfig(compile="yes", device="cpu"))
    state = initial_state(recipe)
    counter = CompileCounter()
    for block in state.model.blocks():
        block.compile(dynamic=True, backend=counter)
    batch = pairs(*first)
    random_state = torch.get_rng_state()
    compile_for_all_sizes(state, batch)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(p.grad is None for p in state.model.parameters())
    for sizes in (first, (11, 11, 12), (12, 13, 11), (13, 12, 12), (10, 10, 10)):
        backpropagate(state, [pairs(*sizes)], 1)
    assert counter.frame_count == 2  # a block of the encoder, a block of the decoder
    torch._dynamo.reset()


def pairs(rows: int, source: int, target: int) -> Batch:
    ids = random_ids(rows, target)
    inputs = {"source": random_ids(rows, source), "source_real": torch.ones(rows, source, dtype=torch.bool)}
    return Batch({**inputs, "target": ids}, ids)


@torch.inference_mode()
def test_decoding_with_compiled_blocks() -> None:
    ids = random_ids(2, 6)
    for capacity in (None, 8):
        model = decoder_only(MODERN, layers=1)
        full = model(ids)
        for block in model.blocks():
            block.compile(backend="eager", fullgraph=True)
        empty = model.new_state(ids) if capacity is None else fixed_state(model, ids, capacity)
        _, state = model.start(ids[:, :3], state=empty)
        for t in range(3, 6):
            assert_same(model.step(ids[:, t : t + 1], state), full[:, t])
        torch._dynamo.reset()


def test_a_model_is_compiled_for_any_length() -> None:
    counter = CompileCounter()
    model = torch.compile(decoder_only(position="rotary", layers=1), backend=counter)
    for length in range(3, 9):
        model(random_ids(2, length))
    assert counter.frame_count <= 2  # once for the first length, once for all others
    torch._dynamo.reset()


def test_a_model_is_exported_for_any_length() -> None:
    model, ids = decoder_only(MODERN, layers=1), random_ids(2, 7)
    anything = torch.export.Dim.DYNAMIC
    program = torch.export.export(model, (ids,), dynamic_shapes=({0: anything, 1: anything},), strict=True)
    for shape in ((3, 5), (2, 11)):
        other = random_ids(*shape)
        assert_same(program.module()(other), model(other))


def test_a_block_is_one_graph() -> None:
    """No graph break: what is compiled is the whole block, for each family, with and without a mask."""
    source, target, real = random_ids(2, 7), random_ids(2, 6), torch.rand(2, 7) < 0.8
    for model, inputs in (
        (encoder_decoder(kv_heads=2, position="rotary", layers=1), (source, target, real)),
        (decoder_only(norm="rms", activation="swiglu", layers=1), (target,)),
    ):
        eager = model(*inputs)
        for block in model.blocks():
            block.compile(backend="eager", fullgraph=True)
        assert_same(model(*inputs), eager)
        torch._dynamo.reset()


@pytest.mark.parametrize(
    ("device", "setting", "steps", "said"),
    [
        ("cuda", "auto", 10_000, "blocks are compiled (train.compile = auto): it would save about 150 s of this run"),
        ("cuda", "auto", 1_000, "blocks are not compiled (train.compile = auto): it would save about 15 s of this run"),
        ("cuda", "no", 1_000, ""),
        ("cpu", "auto", 1_000, ""),
    ],
)
def test_the_log_says_why_blocks_are_compiled(device: str, setting: str, steps: int, said: str) -> None:
    machine = Machine(torch.device(device), torch.bfloat16, compiled=steps > 5000)
    config = TrainConfig(steps=steps, compile=setting)
    found = explain_compiling(machine, config, 1e13)
    assert found == (f"{said}, and takes about 60 s" if said else "")
