"""The estimated costs are those of real models, counted and run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from clearhead.config import ModelConfig, TrainConfig, UserError
from clearhead.model import build_model
from clearhead.model.families import Transformer
from clearhead.presets import PRESETS
from clearhead.recipes import build
from clearhead.train.cost import (
    BatchShape,
    all_trained,
    cache_lines,
    forward_lines,
    memory_lines,
    optimiser_lines,
    parameter_lines,
    readable,
    readable_time,
    total,
    training_seconds,
)
from clearhead.train.optimiser import make_optimisers
from clearhead.train.scale import GPUS
from tiny_models import GRID, name

FAMILIES = ("encoder-decoder", "decoder-only", "encoder-only")
SHAPE = BatchShape(batch=3, length=8)
CASES = [replace(config, family=family) for config in GRID[::5] for family in FAMILIES] + [
    replace(GRID[0], tied="output", source_vocab=70, encoder_layers=3),
    replace(GRID[0], family="encoder-only", head="classes", classes=7, head_dense=True, segments=2),
    replace(GRID[0], family="encoder-only", head="vocabulary", head_dense=True),
    replace(GRID[0], family="encoder-only", head="embedding"),
]


def run(config: ModelConfig, shape: BatchShape) -> tuple[Transformer, Tensor]:
    model = build_model(config)
    ids = torch.randint(0, config.vocab, (shape.batch, shape.length))
    return model, model(*((ids, ids) if config.family == "encoder-decoder" else (ids,)))


@pytest.mark.parametrize("config", CASES, ids=name)
def test_parameters_are_those_of_the_built_model(config: ModelConfig) -> None:
    with torch.device("meta"):
        model = build_model(config)
    assert total(parameter_lines(config)) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("config", CASES, ids=name)
def test_flops_are_those_that_are_counted(config: ModelConfig) -> None:
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):
        run(config, SHAPE)
    counted = counter.get_total_flops() / (SHAPE.batch * SHAPE.length)
    assert total(forward_lines(config, SHAPE)) == pytest.approx(counted, abs=1)


def kept_for_backward(config: ModelConfig, shape: BatchShape) -> int:
    """Bytes that the forward pass and the loss really keep, beyond the weights themselves."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        model, logits = run(config, shape)
        logits = logits.flatten(0, -2)
        F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    return sum(size for pointer, size in kept.items() if pointer not in weights) + logits.nbytes


@pytest.mark.parametrize("preset", PRESETS)
def test_activations_are_about_what_is_kept(preset: str) -> None:
    shape = BatchShape(batch=4, length=64)
    kv_heads = 4 if PRESETS[preset].kv_heads else 0
    sizes = {"d_model": 192, "heads": 12, "kv_heads": kv_heads, "d_ff": 768, "layers": 4, "vocab": 500}
    config = build(ModelConfig, {**vars(PRESETS[preset]), **sizes, "attention_dropout": 0.0})
    if config.family == "encoder-only":
        config = replace(config, head="vocabulary", head_dense=False)
    estimate = sum(
        line.value
        for line in memory_lines(config, shape, all_trained(config))
        if "activations" in line.what or "logits" in line.what
    )
    assert estimate == pytest.approx(kept_for_backward(config, shape), rel=0.1)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("config", [*CASES[::9], *CASES[-4:]], ids=name)
def test_optimisers_store_what_is_estimated(config: ModelConfig, optimiser: Literal["adamw", "muon"]) -> None:
    model = build_model(config)
    optimisers = make_optimisers(model, TrainConfig(optimiser=optimiser))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for each in optimisers:
        each.step()
    kept = [
        sum(t.nbytes for state in each.state.values() for name, t in state.items() if name != "step")
        for each in optimisers
    ]
    counts = all_trained(config, optimiser)
    assert [line.value for line in optimiser_lines(counts)] == kept
    others = [line.what for line in memory_lines(config, SHAPE, counts)]
    assert ("Muon's one average" in others) == (optimiser == "muon")


def test_the_cache_is_what_decoding_keeps() -> None:
    config = replace(GRID[0], family="decoder-only", kv_heads=2)
    model: Any = build_model(config)
    with torch.inference_mode():
        _, state = model.start(torch.zeros(3, 8, dtype=torch.long))
    real = sum(t.nbytes for own, _ in state.caches for t in own.read())
    assert total(cache_lines(config, SHAPE)) == real


def test_time_of_a_known_run() -> None:
    """The paper's base model: 100,000 steps of 25,000 source and target tokens took 12 hours on 8 P100.

    That is 3.8e8 FLOP a token, so about 9.5e17 in all: at the 19 TFLOP/s of a P100, a seventh of the peak was reached.
    """
    at_peak = training_seconds(PRESETS["paper-base"], BatchShape(32, 32), 100_000 * 25_000, GPUS["p100"].peak, 8, 1.0)
    assert at_peak / (12 * 3600) == pytest.approx(0.145, abs=0.005)
    assert training_seconds(
        PRESETS["paper-base"], BatchShape(32, 32), 2.5e9, GPUS["p100"].peak, 4, 0.5
    ) == pytest.approx(4 * at_peak)
    with pytest.raises(UserError, match="--utilisation 40"):
        training_seconds(PRESETS["paper-base"], SHAPE, 1, GPUS["h100"].peak, 1, 40)


def test_numbers_read_well() -> None:
    assert readable(63_082_496, "") == "63.1 M"
    assert readable(1_234_000_000, "B") == "1.23 GB"
    assert readable(12, "B") == "12 B"
    assert readable(999_999, "B") == "1 MB"
    assert [readable_time(s) for s in (1.5, 600, 7200, 200_000)] == [
        "1.5 seconds",
        "10.0 minutes",
        "2.0 hours",
        "2.3 days",
    ]
