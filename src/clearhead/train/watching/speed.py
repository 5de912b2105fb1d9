"""The throughput of a run: tokens and FLOPs per second, and the peak FLOPs of the device."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from functools import cache, lru_cache
from itertools import pairwise

import torch

from clearhead.config import ModelConfig
from clearhead.data.batches import SPARSE, Batch
from clearhead.device import Machine
from clearhead.tasks import Task
from clearhead.train.cost import BatchShape, Line, forward_lines
from clearhead.train.scale import GPUS

RECENT = 50  # steps that the throughput is averaged over


class Throughput:
    """Tokens, FLOPs and time of the last steps; the time between steps, such as evaluation, does not count."""

    def __init__(self) -> None:
        self.recent: deque[tuple[float, int, float]] = deque(maxlen=RECENT)  # seconds, tokens, FLOPs of a step
        self.last_time = time.monotonic()  # when the last step, or the last pause, ended
        self.pause = 0.0  # seconds of the last pause

    def step(self, tokens: int, flops: float) -> None:
        """Count a step that has just ended."""
        now = time.monotonic()
        self.recent.append((now - self.last_time, tokens, flops))
        self.last_time = now

    def restart(self) -> None:
        """Count a pause, such as an evaluation, that has just ended."""
        now = time.monotonic()
        self.pause = now - self.last_time
        self.last_time = now

    @property
    def seconds_per_step(self) -> float:
        """The mean time of a step."""
        return self._seconds() / len(self.recent)

    @property
    def tokens_per_second(self) -> int:
        """Tokens, over the last steps."""
        return round(sum(tokens for _, tokens, _ in self.recent) / self._seconds())

    @property
    def flops_per_second(self) -> float:
        """FLOPs, over the last steps."""
        return sum(flops for *_, flops in self.recent) / self._seconds()

    def _seconds(self) -> float:
        return max(1e-9, sum(seconds for seconds, *_ in self.recent))


def tokens_read(task: Task, batch: Batch) -> int:
    """The tokens of a batch without padding, of pairs those of the target; packed blocks have next to no padding."""
    if task.every_token_learned:
        return batch.tokens
    return batch.real_tokens


def training_flops(config: ModelConfig, batch: Batch) -> float:
    """FLOPs of one forward and backward pass of a batch, as `cost.py` counts them, padding included."""
    sides = [ids for name, ids in batch.inputs.items() if name in ("source", "target", "ids")]
    tokens = sum(side.numel() for side in sides) / len(sides)
    length = sum(side.size(1) for side in sides) / len(sides)
    targets = batch.tokens / batch.targets.numel()
    with_logits = targets if targets < SPARSE else 1.0  # the part of the positions for which logits are computed
    lines = forward_flops(config, round(length))
    return 3 * tokens * sum(line.value * (with_logits if line.what == "logits" else 1) for line in lines)


@lru_cache(maxsize=256)  # batches have some dozens of different widths
def forward_flops(config: ModelConfig, length: int) -> list[Line]:
    """FLOPs of the forward pass for each token of a sequence of this length."""
    return forward_lines(config, BatchShape(length=length))


@cache
def peak_flops(machine: Machine) -> float:
    """The highest FLOPs per second of the device: published for half precision on known GPUs, measured otherwise."""
    if machine.device.type == "cuda" and machine.precision != torch.float32:
        gpu = known_gpu(torch.cuda.get_device_name(machine.device))
        if gpu:
            return GPUS[gpu].peak * 1e12
    return measured_peak(machine)


def known_gpu(name: str) -> str:
    """The key in `scale.GPUS` for a driver's name, "NVIDIA GeForce RTX 4090" -> rtx4090; empty if it has none."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    found = {*words, *map("".join, pairwise(words))} & GPUS.keys()
    return found.pop() if found and "laptop" not in words else ""


def measured_peak(machine: Machine) -> float:
    """FLOPs per second of a large matrix product, the fastest operation there is: the best of five."""
    size = 4096 if machine.device.type == "cuda" else 1024
    matrix = torch.ones(size, size, device=machine.device, dtype=machine.precision)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        (matrix @ matrix)[0, 0].item()  # waits for the device
        seconds.append(time.perf_counter() - begin)
    return 2 * size**3 / min(seconds)


def peak_memory(device: torch.device) -> int:
    """The highest memory use so far, in bytes: of the GPU, or of the whole process on a CPU; 0 if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
