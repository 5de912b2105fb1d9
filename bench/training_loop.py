"""The overhead of the training loop over a bare forward, backward and optimiser step, at GPT-2's size.

    python bench/training_loop.py [--rounds 6] [--tokens 512] [--threads 2]

Both take turns on one model in one process. The bare step is written by hand, with gradient clipping; the loop's is
`train_step` with its log, which writes metrics.jsonl and draws nothing. A ratio of 1.03 means an overhead of 3 %.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from measure import in_turns, options
from torch import nn

from clearhead.bench.contest import median_ratio
from clearhead.config import DataConfig, Recipe, TrainConfig
from clearhead.data.batches import Batch
from clearhead.presets import PRESETS
from clearhead.train.loop import train_step
from clearhead.train.run import initial_state
from clearhead.train.state import TrainState
from clearhead.train.watching.log import Log

VOCAB = 8000


def bare_step(state: TrainState, batch: Batch) -> None:
    """Forward, backward, clipping and optimiser step, nothing else."""
    logits = state.model(**batch.inputs)
    torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()))
    nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    for optimiser in state.optimisers:
        optimiser.step()
        optimiser.zero_grad()


def main() -> None:
    arguments = options(__doc__, rounds=6, tokens=512, threads=2)
    model = replace(PRESETS["gpt2"], vocab=VOCAB, dropout=0.0, attention_dropout=0.0)
    recipe = Recipe("bench", data=DataConfig(task="language"), model=model, train=TrainConfig(device="cpu"))
    state = initial_state(recipe)
    ids, following = torch.randint(3, VOCAB, (2, 1, arguments.tokens))
    batch = Batch({"ids": ids}, following)
    with tempfile.TemporaryDirectory() as folder, Log(Path(folder), recipe, state.machine, 0, quiet=True) as log:
        steps = {
            "bare": lambda: bare_step(state, batch),
            "loop": lambda: train_step(state, [batch], 1e-4, recipe.train, log),
        }
        times = in_turns(steps, arguments.rounds)
    bare, loop = (statistics.median(times[name]) for name in ("bare", "loop"))
    ratio = median_ratio(times["loop"], times["bare"])
    print(
        f"gpt2, {arguments.tokens} tokens, {arguments.threads} threads: bare {bare:.3f} s, "
        f"loop {loop:.3f} s, loop / bare {ratio:.3f}"
    )


if __name__ == "__main__":
    main()
