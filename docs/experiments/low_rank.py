"""Chapter 21: fine-tuning all weights, and LoRA of several ranks: what is learned, and what is forgotten.

A model has learned to reverse sequences. Now it has to learn the same with other symbols: each is replaced by another.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from small import BLUE, ORANGE, QUICK, Batch, accuracy, main, panels, report, reversals, small_model, table, train

from clearhead.train.lora import add_lora

LENGTH = 8
OTHER = torch.randperm(16, generator=torch.Generator().manual_seed(0))  # what each symbol becomes
RANKS = (1, 2, 4, 8)
MATRICES = "*.query *.value *.out *.up *.down"


def replaced(seed: int = 1) -> Iterator[Batch]:
    """Sequences, backwards, with other symbols."""
    for ids, answers in reversals(LENGTH, seed=seed):
        yield ids, OTHER[answers]


def compare() -> None:
    """All weights, then LoRA."""
    base = small_model(tied="none")
    train(base, reversals(LENGTH), 300)
    rows, new, old = [], [], []
    for rank in (0, *(RANKS[:1] if QUICK else RANKS)):
        model = copy.deepcopy(base)
        if rank:
            add_lora(model, rank, MATRICES)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        train(model, replaced(), 150)
        new.append(accuracy(model, replaced(seed=99)))
        old.append(accuracy(model, reversals(LENGTH, seed=99)))
        name = f"LoRA, rank {rank}" if rank else "all weights"
        rows.append([name, f"{sum(p.numel() for p in trained):,}", f"{new[-1]:.0f} %", f"{old[-1]:.0f} %"])
    figure, (axis,) = panels(1, 5.5)
    places = range(len(rows))
    axis.bar([place - 0.2 for place in places], new, 0.4, color=BLUE, label="the new task")
    axis.bar([place + 0.2 for place in places], old, 0.4, color=ORANGE, label="the old task")
    axis.set_xticks(places, [f"{row[0]}\n{row[1]}" for row in rows], fontsize=8)
    axis.set_title("tokens right after 150 steps (%), by number of trained parameters")
    axis.set_ylim(0, 130)
    axis.legend(frameon=False, ncols=2, loc="upper center")
    before = (
        f"Before: {accuracy(base, replaced(seed=99)):.0f} % and {accuracy(base, reversals(LENGTH, seed=99)):.0f} %."
    )
    header = ["trained", "parameters", "right, new task", "right, old task"]
    report("low_rank", f"{table(header, rows)}\n\n{before}", figure)


if __name__ == "__main__":
    main(compare)
