"""Throughput and FLOPs: recent steps only, without evaluation and padding."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from clearhead.config import ModelConfig, Recipe
from clearhead.data.batches import IGNORE, Batch
from clearhead.tasks import TASKS
from clearhead.train.cost import BatchShape, forward_lines, total
from clearhead.train.run import train
from clearhead.train.step import StepInfo, StepResult
from clearhead.train.watching import speed
from clearhead.train.watching.log import Log
from clearhead.train.watching.speed import Throughput, known_gpu, measured_peak, tokens_read, training_flops
from tiny_models import random_ids
from watched_runs import CPU, log_of


def test_pace_is_recent_and_leaves_evaluation_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    throughput = Throughput()
    for seconds in [9.0] * 30 + [2.0] * speed.RECENT:
        now[0] += seconds
        throughput.step(tokens=10, flops=400)
        now[0] += 1000
        throughput.restart()
    assert throughput.seconds_per_step == 2.0
    assert throughput.tokens_per_second == 5
    assert throughput.flops_per_second == 200.0
    assert throughput.pause == 1000


def test_the_run_restarts_the_clock_after_evaluation(recipe: Recipe, tmp_path: Path, monkeypatch: Any) -> None:
    events: list[str] = []
    for name in ("step", "evaluated", "show_samples", "restart_clock"):
        method = getattr(Log, name)

        def noted(self: Log, *arguments: Any, name: str = name, method: Any = method) -> None:
            events.append(name)
            method(self, *arguments)

        monkeypatch.setattr(Log, name, noted)
    settings = replace(recipe.train, steps=2, evaluate_every=1, snapshots=0, tensorboard=False)
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    assert events == ["restart_clock", *["step", "evaluated", "show_samples", "restart_clock"] * 2]


def test_flops_are_those_of_the_envelope() -> None:
    config = ModelConfig(family="decoder-only", vocab=50)
    ids, targets = random_ids(3, 7), random_ids(3, 7)
    lines = forward_lines(config, BatchShape(3, 7))
    assert training_flops(config, Batch({"ids": ids}, targets)) == pytest.approx(3 * 21 * total(lines))
    few = torch.full_like(targets, IGNORE)
    few[0, 0] = 1
    logits = next(line.value for line in lines if line.what == "logits")
    expected = 3 * 21 * (total(lines) - logits * 20 / 21)
    assert training_flops(config, Batch({"ids": ids}, few)) == pytest.approx(expected)


def test_padding_is_not_read() -> None:
    real = torch.tensor([[True, True, False], [True, True, True]])
    ids, targets = random_ids(2, 3), random_ids(2, 3).masked_fill(~real, IGNORE)
    assert tokens_read(TASKS["translation"], Batch({"source": random_ids(2, 9), "target": ids}, targets)) == 5
    assert tokens_read(TASKS["classification"], Batch({"ids": ids, "real": real}, torch.tensor([0, 1]))) == 5
    assert tokens_read(TASKS["masked"], Batch({"ids": ids}, torch.full_like(ids, IGNORE))) == 6


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", ""),
        ("NVIDIA L40S", ""),
        ("NVIDIA GH200 480GB", ""),
    ],
)
def test_gpus_are_known_by_their_whole_name(name: str, gpu: str) -> None:
    assert known_gpu(name) == gpu


def test_the_display_has_all_figures() -> None:
    assert measured_peak(CPU) > 1e8
    log = log_of(steps=100, evaluate_every=10)
    written = io.StringIO()
    shown = Console(width=120, file=written)
    shown.print(log.render())
    batch = Batch({"source": random_ids(4, 6), "target": random_ids(4, 6)}, random_ids(4, 6))
    log.step(StepResult(StepInfo(25, 0.1, batch.tokens, [batch]), 2.0, 0.5))
    shown.print(log.render())
    text = written.getvalue()
    for words in (
        "the first step",
        "step 25 of 100",
        "loss 2.0000  perplexity 7.39",
        "tokens/s",
        "% of peak",
        "left",
    ):
        assert words in text
    assert re.search(r"\d (MB|GB)", text)  # which of them depends on what ran before in this process
