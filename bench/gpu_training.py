"""Training steps on a GPU: gpt2 and paper-base through the loop's own `train_step`, tokens per second and memory.

    python bench/gpu_training.py [--steps 30] [--compile no,yes]

gpt2: 64 sequences of 1,024 tokens. paper-base: 512 pairs of 32 + 32 tokens, a vocabulary of 32,000, dropout and label
smoothing of 0.1, padding in every seventh source. In bfloat16, with gradient clipping, the optimiser and the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from measure import options

from clearhead.config import DataConfig, ModelConfig, Recipe, TrainConfig
from clearhead.data.batches import Batch
from clearhead.presets import PRESETS
from clearhead.train.loop import finish_steps, train_step
from clearhead.train.run import initial_state
from clearhead.train.watching.log import Log


def language_batch() -> Batch:
    ids = torch.randint(50_257, (64, 1024), device="cuda")
    return Batch({"ids": ids}, ids.roll(-1, 1), ids.numel(), ids.numel())


def translation_batch() -> Batch:
    source, target = torch.randint(3, 32_000, (2, 512, 32), device="cuda")
    real = torch.ones_like(source, dtype=torch.bool)
    real[::7, -3:] = False
    inputs = {"source": source, "source_real": real, "target": target}
    return Batch(inputs, target.roll(-1, 1), target.numel(), target.numel())


JOBS: dict[str, tuple[ModelConfig, DataConfig, Callable[[], Batch]]] = {
    "gpt2": (
        replace(PRESETS["gpt2"], dropout=0.0, attention_dropout=0.0),
        DataConfig(task="language"),
        language_batch,
    ),
    "paper-base": (replace(PRESETS["paper-base"], vocab=32_000), DataConfig(), translation_batch),
}


def measure(name: str, compiled: str, steps: int) -> None:
    """Print the throughput and memory of one job."""
    model, data, make_batch = JOBS[name]
    smoothing = 0.1 if name == "paper-base" else 0.0
    recipe = Recipe(name, model=model, data=data, train=TrainConfig(label_smoothing=smoothing, compile=compiled))  # type: ignore[arg-type]
    state = initial_state(recipe)
    log = Log(None, recipe, state.machine, 0, quiet=True)
    batches = [make_batch() for _ in range(4)]

    def take(count: int) -> float:
        began = time.perf_counter()
        for number in range(count):
            train_step(state, [batches[number % len(batches)]], 1e-4, recipe.train, log)
        finish_steps(state, recipe.train, log)
        return time.perf_counter() - began

    warm_up = take(6)
    per_step = take(steps) / steps
    tokens = batches[0].tokens / per_step
    memory = torch.cuda.memory_reserved() / 1e9
    print(
        f"{name:<10} compile={compiled:<3} {1e3 * per_step:7.2f} ms a step  {tokens:9,.0f} tokens/s  "
        f"{memory:5.1f} GB reserved  {warm_up:5.1f} s before"
    )


def main() -> None:
    arguments = options(__doc__, steps=30, compile="no,yes")
    if not torch.cuda.is_available():
        print("no GPU here: nothing to measure")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name in JOBS:
        for compiled in arguments.compile.split(","):
            measure(name, compiled, arguments.steps)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
