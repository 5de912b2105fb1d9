"""How hard a run works: tokens it reads, FLOPs it does, and the most its device could do."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch

from clearhead.config import ModelConfig
from clearhead.data.batches import Batch
from clearhead.device import Machine
from clearhead.tasks import Task
from clearhead.train.cost import GPUS, Line, Load, forward_lines
from clearhead.train.loss import SPARSE

RECENT = 50  # steps that the pace is taken from


class Work(NamedTuple):
    """What a step took, or what several did."""

    seconds: float
    tokens: int
    flops: float


class Pace:
    """The work of the last steps; what happens between steps, such as evaluation, is left out."""

    def __init__(self) -> None:
        self.recent: deque[Work] = deque(maxlen=RECENT)
        self.mark, self.pause = time.monotonic(), 0.0

    def step(self, tokens: int, flops: float) -> None:
        """A step has just ended."""
        now = time.monotonic()
        self.recent.append(Work(now - self.mark, tokens, flops))
        self.mark = now

    def restart(self) -> None:
        """Something that is no step has just ended."""
        now = time.monotonic()
        self.pause, self.mark = now - self.mark, now

    @property
    def work(self) -> Work:
        """Of a second, on average; the seconds are those of a step."""
        seconds, tokens, flops = (sum(column) for column in zip(*self.recent, strict=True))
        seconds = max(seconds, 1e-9)
        return Work(seconds / len(self.recent), round(tokens / seconds), flops / seconds)


def tokens_read(task: Task, batch: Batch) -> int:
    """Tokens of a batch, of a pair the target's; without padding, except in packed blocks, which have next to none."""
    if task.every_token_learned:
        return batch.tokens
    real = batch.inputs.get("real")
    return batch.inputs["ids"].numel() if real is None else int(real.sum())


def training_flops(config: ModelConfig, batch: Batch) -> float:
    """FLOPs of the forward and backward pass of a batch, as `size.py` counts them, padding included."""
    sides = [ids for name, ids in batch.inputs.items() if name in ("source", "target", "ids")]
    tokens, length = (sum(sizes) / len(sides) for sizes in zip(*((s.numel(), s.size(1)) for s in sides), strict=True))
    learned = batch.tokens / batch.targets.numel()
    asked = learned if learned < SPARSE else 1.0  # logits are computed for those alone
    lines = forward_of(config, round(length))
    return 3 * tokens * sum(line.value * (asked if line.what == "logits" else 1) for line in lines)


@lru_cache(maxsize=256)  # batches come in some dozens of widths
def forward_of(config: ModelConfig, length: int) -> list[Line]:
    """Forward FLOPs of a token among so many."""
    return forward_lines(config, Load(length=length))


@cache
def peak_flops(machine: Machine) -> float:
    """The most FLOPs a second the device can do: as its maker says for half precision, else measured."""
    if machine.device.type == "cuda" and machine.precision != torch.float32:
        gpu = gpu_of(torch.cuda.get_device_name(machine.device))
        if gpu:
            return GPUS[gpu] * 1e12
    return measured_peak(machine)


def gpu_of(name: str) -> str:
    """The GPU of our table that a driver's name means: "NVIDIA GeForce RTX 4090" is rtx4090; "" for others."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    found = {*words, *map("".join, pairwise(words))} & GPUS.keys()
    return found.pop() if found and "laptop" not in words else ""


def measured_peak(machine: Machine) -> float:
    """FLOPs a second of a large matrix product, which nothing else surpasses: the best of a few."""
    size = 4096 if machine.device.type == "cuda" else 1024
    matrix = torch.ones(size, size, device=machine.device, dtype=machine.precision)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        (matrix @ matrix)[0, 0].item()  # waits for the device
        seconds.append(time.perf_counter() - begin)
    return 2 * size**3 / min(seconds)


def memory_used(device: torch.device) -> int:
    """The most bytes so far: of the GPU, or of the whole process elsewhere; 0 where nobody can tell."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
