"""Train in several processes, as torchrun would start them, and compare their runs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.train import loop
from clearhead.train.run import train
from clearhead.train.watching import log
from forked import PROCESSES

RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.0),  # tied = "all"
    train=TrainConfig(steps=8, evaluate_every=4, warmup=2, step_tokens=2048, device="cpu", samples=0),
)


def changed(recipe: Recipe, dropout: float = 0.0, **train: Any) -> Recipe:
    model = replace(recipe.model, dropout=dropout)
    return replace(recipe, model=model, train=replace(recipe.train, **train))


@dataclass(frozen=True)
class Job:
    """What each of some processes does."""

    recipe: Recipe
    run: Path
    resume: bool = False
    stop_after: int = 0  # in this step the last process gets a signal:
    by: signal.Signals = signal.SIGTERM
    restart: int = 0  # how often torchrun has started it before; then the last process comes late


def work(job: Job, rank: int, world: int, port: int) -> None:
    """Train as torchrun would have started it; what is said to the user goes into a file."""
    torch.set_num_threads(1)
    setattr(log, "peak_flops", nominal_peak)  # noqa: B010
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    names |= {"GROUP_WORLD_SIZE": 1, "TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_USE_AGENT_STORE": True}
    names |= {"TORCHELASTIC_RESTART_COUNT": job.restart, "TORCHELASTIC_MAX_RESTARTS": 3}
    os.environ.update({name: str(value) for name, value in names.items()})
    if rank == world - 1:
        loop.train_step = interrupted(loop.train_step, job.stop_after, job.by)
        time.sleep(2 * job.restart)
    try:
        train(job.recipe, job.run, job.resume, quiet=True)
    except UserError as error:
        job.run.with_name(f"{job.run.name}-said-{rank}").write_text(str(error))
        sys.exit(1)


def interrupted(train_step: Callable[..., None], at: int, by: signal.Signals) -> Callable[..., None]:
    def step(state: Any, *arguments: Any) -> None:
        if state.step + 1 == at:
            os.kill(os.getpid(), by)
        train_step(state, *arguments)

    return step


def nominal_peak(_: Any) -> float:
    return 1e12  # measuring it takes longer than the tests


def meeting_place() -> TCPStore:
    """The store that torchrun keeps as long as it runs."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def together(world: int, job: Job, store: TCPStore | None = None) -> list[int | None]:
    """How the processes ended that did a job together."""
    store = store or meeting_place()
    processes = [PROCESSES.Process(target=work, args=(job, rank, world, store.port)) for rank in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def losses_of(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] in ("train", "valid")]


def assert_close(run: Path, other: Path, loss: float = 1e-6, weight: float = 2e-6) -> None:
    """The same losses and weights, but for the order of a sum."""
    assert losses_of(run) == pytest.approx(losses_of(other), rel=loss)
    ours, theirs = load_file(run / "model.safetensors"), load_file(other / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, weights in theirs.items():
        # A key's bias adds the same to all scores of a query: its gradient is 0 but for rounding, which Adam blows up.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(ours[name], weights, rtol=0, atol=weight, msg=partial("{}: {}".format, name))


def assert_equal(run: Path, other: Path) -> None:
    """The same losses and weights, bit for bit."""
    assert losses_of(run) == losses_of(other)
    ours, theirs = load_file(run / "model.safetensors"), load_file(other / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
