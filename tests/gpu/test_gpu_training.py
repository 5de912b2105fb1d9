"""Training on a GPU: resuming, memory, compiled and recorded steps.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.data.batches import Batch
from clearhead.fast.gpu.graphs import GraphMemory, record
from clearhead.fast.train.step import GraphStep
from clearhead.train.checkpoint import optimiser_tensors
from clearhead.train.run import initial_state, train
from clearhead.train.step import StepInfo
from on_gpu import needs_gpu

pytestmark = needs_gpu


def gpu_recipe(folder: Path, **changes: object) -> Recipe:
    return Recipe(
        name="on-a-gpu",
        data=DataConfig(corpus="phrasebook", size=500, batch_tokens=1024, cache=str(folder / "cache")),
        tokenizer=TokenizerConfig(vocab=500),
        model=ModelConfig(d_model=64, d_ff=128, layers=2, dropout=0.1),
        train=TrainConfig(schedule="constant", device="cuda", **{"steps": 12, "evaluate_every": 6} | changes),
    )


def test_resumed_is_never_stopped_on_a_gpu(tmp_path: Path) -> None:
    """Bit for bit, with dropout and in bfloat16, where the settings ask for it."""
    recipe = gpu_recipe(tmp_path, deterministic=True)
    train(recipe, tmp_path / "whole", quiet=True)
    train(replace(recipe, train=replace(recipe.train, steps=6)), tmp_path / "parts", quiet=True)
    train(recipe, tmp_path / "parts", resume=True, quiet=True)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


def test_too_little_memory_says_which_setting_to_halve(tmp_path: Path) -> None:
    recipe = gpu_recipe(tmp_path)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-4)  # about 14 MB of an H200
    try:
        with pytest.raises(UserError, match=r"data.batch_tokens = 1024; halve it .* data.batch_tokens=512"):
            train(recipe, tmp_path / "run", quiet=True)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_compiled_run_learns_what_one_that_is_not_does(tmp_path: Path) -> None:
    for compiled in ("no", "yes"):
        train(gpu_recipe(tmp_path, compile=compiled, precision="float32"), tmp_path / compiled, quiet=True)
    eager, compiled_weights = (load_file(tmp_path / name / "model.safetensors") for name in ("no", "yes"))
    for key, weight in eager.items():
        torch.testing.assert_close(compiled_weights[key], weight, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    "setting", [{"optimiser": "muon"}, {"average": "ema", "ema": 0.9}, {"r_drop": 5.0}], ids=["muon", "ema", "r-drop"]
)
def test_a_recorded_step_is_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]) -> None:
    """Bit for bit: a CUDA graph launches the same kernels, and draws the same numbers for dropout."""
    recipe = gpu_recipe(tmp_path, steps=60, evaluate_every=30, deterministic=True, **setting)
    train(recipe, tmp_path / "recorded", quiet=True)
    monkeypatch.setattr(GraphStep, "record", lambda self, *_: None)  # every step kernel by kernel
    train(recipe, tmp_path / "plain", quiet=True)
    recorded, plain = (load_file(tmp_path / name / "model.safetensors") for name in ("recorded", "plain"))
    assert all(torch.equal(recorded[key], plain[key]) for key in plain)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_that_is_not_finite_changes_nothing(tmp_path: Path, optimiser: str) -> None:
    """The GPU decides by itself; the host learns of it later."""
    recipe = gpu_recipe(tmp_path, optimiser=optimiser)
    recipe = replace(recipe, model=replace(recipe.model, vocab=500))
    state = initial_state(recipe)
    ids = torch.randint(5, 500, (4, 6), device="cuda")
    batch = Batch({"source": ids, "source_real": torch.ones_like(ids, dtype=torch.bool), "target": ids}, ids)
    step = GraphStep(state, recipe.train)
    info = StepInfo(1, 1e-3, batch.tokens, [batch])
    for _ in range(3):  # plain, recorded, replayed
        step(state, info)
    before = {key: p.clone() for key, p in state.model.named_parameters()}
    step(state, info)
    assert any(not torch.equal(p, before[key]) for key, p in state.model.named_parameters())
    for key, p in state.model.named_parameters():
        p.data.copy_(before[key])
    next(state.model.parameters()).data[:] = torch.nan
    after = {key: p.clone() for key, p in state.model.named_parameters()}
    saved = {key: t.clone() for key, t in optimiser_tensors(state.model, state.optimisers).items()}
    step(state, info)
    assert all(torch.equal(p.nan_to_num(7), after[key].nan_to_num(7)) for key, p in state.model.named_parameters())
    assert all(torch.equal(t, saved[key]) for key, t in optimiser_tensors(state.model, state.optimisers).items())
    assert [result.applied for result in step.finish()] == [True, True, True, True, False]


def test_graphs_share_their_memory() -> None:
    """A training step has dozens of shapes: the memory that it needs is that of the largest, not of all of them."""
    memory = GraphMemory()
    weight = torch.randn(1024, 1024, device="cuda")
    totals = torch.zeros(3, device="cuda")

    def compute(index: int, rows: int) -> None:
        x = torch.ones(rows, 1024, device="cuda")
        totals[index] = (x @ weight).relu().sum()

    jobs = [(0, 40_000), (1, 30_000), (2, 20_000)]
    recorded, reserved = [], []
    for job in jobs:
        compute(*job)
        recorded.append(record(lambda job=job: compute(*job), memory)[0])  # type: ignore[misc]
        reserved.append(torch.cuda.memory_stats()["reserved_bytes.all.current"])
    assert reserved[2] - reserved[0] < 40_000 * 1024 * 4
    wanted = totals.clone()
    totals.zero_()
    for graph in recorded[::-1]:
        graph.replay()
    torch.testing.assert_close(totals, wanted)


def test_a_recording_survives_graphs_that_are_no_longer_used() -> None:
    """A trained model leaves its graphs to the garbage collector, which must not destroy them during a recording."""
    x = torch.zeros(8, device="cuda")

    def compute() -> None:
        _ = [[] for _ in range(100_000)]  # so many that the collector would run
        x.add_(1)

    compute()
    for _ in range(3):
        cycle: list[Any] = [record(compute)[0]]
        cycle.append(cycle)
        del cycle
    graph, _ = record(compute)
    graph.replay()
    assert x.tolist() == [2.0] * 8
