"""Estimates for many GPUs agree with what was measured, and docs/scale.md shows what the code computes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.model import build_model
from clearhead.presets import PRESETS
from clearhead.train.cost import BatchShape, all_trained, parameter_lines, total
from clearhead.train.scale import (
    MEASURED_UTILISATION,
    Cluster,
    block_sizes,
    gpu_memory_lines,
    root_size,
    step_time,
)

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
GPT2 = replace(PRESETS["gpt2"], dropout=0.0, attention_dropout=0.0)
LLAMA_8B = replace(PRESETS["modern-7b"], vocab=128_256)


def test_one_gpu_is_as_fast_and_as_full_as_measured() -> None:
    """gpt2, 64 x 1,024 tokens, one H200: 522,000 tokens/s and 25.8 GB (docs/scale.md)."""
    shape = BatchShape(64, 1024)
    step = step_time(GPT2, shape, Cluster("h200", 1, MEASURED_UTILISATION))
    assert step.throughput == pytest.approx(522_000, rel=0.02)
    assert total(gpu_memory_lines(GPT2, shape, all_trained(GPT2), 1)) == pytest.approx(25.8e9, rel=0.05)


def test_eight_and_128_gpus_are_as_torchtitan_measured_them() -> None:
    """Llama 3.1 8B, 2 x 8,192 tokens, H100, compiled, some activations recomputed.

    8 GPUs: 6,667 tokens/s each and 77.0 GiB; 128 GPUs: 6,514 and 62.0 GiB.
    """
    assert total(parameter_lines(LLAMA_8B)) == 8_030_261_248
    shape = BatchShape(2, 8192)
    memory = {}
    for gpus, speed, size in ((8, 6667, 77.0), (128, 6514, 62.0)):
        all_or_none = [
            step_time(LLAMA_8B, shape, Cluster("h100", gpus, MEASURED_UTILISATION), recomputed).throughput / gpus
            for recomputed in (True, False)
        ]
        assert all_or_none[0] < speed < all_or_none[1]
        memory[gpus] = [
            total(gpu_memory_lines(LLAMA_8B, shape, all_trained(LLAMA_8B), gpus, r)) / 2**30 for r in (True, False)
        ]
        assert memory[gpus][0] < size < memory[gpus][1]
    assert memory[8][0] - memory[128][0] == pytest.approx(77.0 - 62.0, abs=1.5)


@pytest.mark.parametrize("name", PRESETS)
def test_blocks_and_the_rest_are_all_parameters(name: str) -> None:
    with torch.device("meta"):
        model = build_model(PRESETS[name])
    sizes = [sum(p.numel() for p in block.parameters()) for block in model.blocks()]
    assert {*block_sizes(PRESETS[name])} == {*sizes}
    assert root_size(PRESETS[name]) == sum(p.numel() for p in model.parameters()) - sum(sizes)


def test_communication_is_8_bytes_for_each_parameter() -> None:
    config = PRESETS["modern-7b"]
    cluster = Cluster("h100", 8, 0.45)
    assert cluster.bandwidth == pytest.approx(0.7 * 450e9)
    assert Cluster("h100", 16, 0.45).bandwidth == pytest.approx(0.7 * 400e9)  # eight network cards of 50 GB/s
    step = step_time(config, BatchShape(1, 4096), cluster)
    assert step.communication == pytest.approx(8 * 7_241_732_096 * 7 / 8 / cluster.bandwidth, rel=0.02)
    assert step.seconds == pytest.approx(step.compute + step.exposed)


def test_small_batches_wait_for_the_network() -> None:
    config = PRESETS["modern-7b"]
    hidden, waiting = (step_time(config, BatchShape(1, n), Cluster("h100", 64, 0.45)) for n in (4096, 1024))
    assert hidden.compute > hidden.communication
    assert waiting.seconds == waiting.communication > waiting.compute


def test_more_gpus_need_less_memory_and_lose_some_speed() -> None:
    config = PRESETS["modern-1b"]
    shape = BatchShape(8, 2048)
    sizes = [total(gpu_memory_lines(config, shape, all_trained(config), gpus)) for gpus in (8, 64, 512)]
    speeds = [step_time(config, shape, Cluster("h100", gpus, 0.45)).throughput / gpus for gpus in (1, 8, 64, 512)]
    assert sizes == sorted(sizes, reverse=True)
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[-1] > 0.9 * speeds[0]


def test_impossible_clusters_are_refused() -> None:
    with pytest.raises(UserError, match="--gpus 0: must be at least 1"):
        Cluster("h100", 0, 0.45)
    with pytest.raises(UserError, match=r"--utilisation 1\.5"):
        Cluster("h100", 8, 1.5)


ROW = re.compile(
    r"^\| (modern-\w+), (\d+) × ([\d,]+)(, recomputed)? \| (\d+) \| ([\d.]+) GB \| ([\d.]+) s \| ([\d,]+) \| "
    r"([\d,]+) \| ([\d.]+) s \| ([\d,]+) \|$",
    re.MULTILINE,
)


def test_the_page_shows_what_the_code_computes() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf8"))
    assert len(rows) == 9
    for name, batch, length, recomputed, gpus, memory, seconds, whole, each, communication, tokens in rows:
        shape = BatchShape(int(batch), int(length.replace(",", "")))
        config = PRESETS[name]
        step = step_time(config, shape, Cluster("h100", int(gpus), MEASURED_UTILISATION), bool(recomputed))
        size = total(gpu_memory_lines(config, shape, all_trained(config), int(gpus), bool(recomputed)))
        assert (f"{size / 1e9:.1f}", f"{step.seconds:.2f}") == (memory, seconds)
        assert [f"{float(f'{speed:.3g}'):,.0f}" for speed in (step.throughput, step.throughput / int(gpus))] == [
            whole,
            each,
        ]
        assert (f"{step.communication:.2f}", f"{step.tokens:,}") == (communication, tokens)
