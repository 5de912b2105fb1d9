"""Snapshots: the weights at log-spaced steps, in half precision, so that one can see later how a model learned.

Most changes happen early, so they are close together at the start: 0, 1, 2, 5, 12, 27, ... and the last step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

from clearhead.config import TrainConfig, UserError
from clearhead.runs import Tensors, write_weights
from clearhead.train.folder import require_own_folder


@lru_cache(maxsize=8)  # called after every step
def snapshot_steps(steps: int, count: int) -> tuple[int, ...]:
    """The steps of `count` snapshots (of all steps in a shorter run): 0, then each larger by about the same factor."""
    if count <= 1:
        return (steps,)[:count]
    found = [0]
    for i in range(count - 1):
        wanted = round(steps ** (i / (count - 2))) if count > 2 else steps
        found.append(min(steps, max(wanted, found[-1] + 1)))
    return tuple(sorted({*found, steps}))


def write_snapshot(weights: Callable[[], Tensors], step: int, config: TrainConfig, run: Path) -> None:
    """Write the weights if this step has a snapshot; every process must call it, and the main one gets the weights."""
    if step in snapshot_steps(config.steps, config.snapshots) and (tensors := weights()):
        require_own_folder(run)
        try:
            write_weights(tensors, run / "snapshots" / f"step-{step:08d}.safetensors", torch.float16)
        except UserError as error:
            remedy = "solve this, and continue with --resume, also without snapshots: train.snapshots=0"
            raise UserError(f"{error}; {remedy}") from error


def delete_later_snapshots(run: Path, step: int) -> None:
    """Delete the snapshots of steps after the one that a run continues from."""
    for path in (run / "snapshots").glob("step-*.safetensors"):
        if step_of(path) > step:
            path.unlink()


def step_of(path: Path) -> int:
    """The step of a snapshot, from its file name."""
    return int(path.stem.removeprefix("step-"))
