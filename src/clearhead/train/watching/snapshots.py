"""Snapshots: the weights at log-spaced steps, in half precision, to watch a model learn afterwards.

Most happens early, so they lie close together at the start: 0, 1, 2, 5, 12, 27, ... and the last step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

from clearhead.config import TrainConfig
from clearhead.runs import Tensors, write_weights


@lru_cache(maxsize=8)  # every step asks
def snapshot_steps(steps: int, count: int) -> tuple[int, ...]:
    """So many steps of a run, or all where it has fewer: 0, then each about the same factor after the one before."""
    if count <= 1:
        return (steps,)[:count]
    found = [0]
    for i in range(count - 1):
        wanted = round(steps ** (i / (count - 2))) if count > 2 else steps
        found.append(min(steps, max(wanted, found[-1] + 1)))
    return tuple(sorted({*found, steps}))


def snapshot(weights: Callable[[], Tensors], step: int, config: TrainConfig, run: Path) -> None:
    """Write the weights down if it is time to; of several processes all must ask for them, and one gets them."""
    if step in snapshot_steps(config.steps, config.snapshots) and (tensors := weights()):
        write_weights(tensors, run / "snapshots" / f"step-{step:08d}.safetensors", torch.float16)


def drop_later_snapshots(run: Path, step: int) -> None:
    """Take away what a run wrote after the step that it now goes on from."""
    for path in (run / "snapshots").glob("step-*.safetensors"):
        if step_of(path) > step:
            path.unlink()


def step_of(path: Path) -> int:
    """The step of a snapshot, by its name."""
    return int(path.stem.removeprefix("step-"))
