"""What the training loop adds to a bare forward, backward and optimiser step, at GPT-2's size.

    python bench/training_loop.py [--rounds 6] [--tokens 512] [--threads 2]

Both take turns on one model in one process. The bare step is what one would write by hand, with clipping; the loop's
is `take_step` with its log, which writes metrics.jsonl and draws nothing. A ratio of 1.03 means that it adds 3 %.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from clearhead.config import DataConfig, Recipe, TrainConfig
from clearhead.data.batches import Batch
from clearhead.presets import PRESETS
from clearhead.train.loop import Learner, take_step
from clearhead.train.run import begin
from clearhead.train.watching.log import Log

VOCAB = 8000


def bare_step(learner: Learner, batch: Batch) -> None:
    """Forward, backward, clipping, step: nothing else."""
    logits = learner.model(**batch.inputs)
    torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()))
    nn.utils.clip_grad_norm_(learner.model.parameters(), 1.0)
    for optimiser in learner.optimisers:
        optimiser.step()
        optimiser.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = replace(PRESETS["gpt2"], vocab=VOCAB, dropout=0.0, attention_dropout=0.0)
    recipe = Recipe("bench", data=DataConfig(task="language"), model=model, train=TrainConfig(device="cpu"))
    learner = begin(recipe)
    ids, following = torch.randint(3, VOCAB, (2, 1, arguments.tokens))
    batch = Batch({"ids": ids}, following)
    bare, looped = [], []
    with tempfile.TemporaryDirectory() as folder, Log(Path(folder), recipe, learner.machine, 0, quiet=True) as log:
        for turn in range(arguments.rounds + 1):
            began = time.perf_counter()
            bare_step(learner, batch)
            between = time.perf_counter()
            take_step(learner, [batch], 1e-4, recipe.train, log)
            if turn:  # the first round warms up
                bare.append(between - began)
                looped.append(time.perf_counter() - between)
    ratio = statistics.median(b / a for a, b in zip(bare, looped, strict=True))
    print(
        f"gpt2, {arguments.tokens} tokens, {arguments.threads} threads: bare {statistics.median(bare):.3f} s, "
        f"loop {statistics.median(looped):.3f} s, loop / bare {ratio:.3f}"
    )


if __name__ == "__main__":
    main()
