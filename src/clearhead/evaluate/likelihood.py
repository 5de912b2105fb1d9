"""How likely a model holds a text: every token predicted once, however long the text is.

A text that is longer than a window is read in windows that overlap by half: in each but the first, only the second half
is predicted, so that at least half a window stands before every token, but for those at the beginning.

    window 1   [start] the sun rises over the
    window 2                         over the hills and the
    window 3                                        and the day begins
                       ====================== ============= ==========  predicted: each token once

Shapes: B windows, T tokens, N tokens to predict, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batches import IGNORE, Batch, Key, Side, batch_of, next_tokens
from clearhead.data.plan import Cell, Ints, Rows, cells_of
from clearhead.data.readers.documents import Piece
from clearhead.runs import Run

Look = Callable[[Batch, Tensor, Tensor], None]  # sees a batch, and -log p (N,) and guesses (N,) of its targets


@dataclass
class Likelihood:
    """What a model made of many tokens."""

    nats: float = 0.0  # the sum of -log p
    tokens: int = 0
    right: int = 0  # tokens that the model held the likeliest

    def add(self, losses: Tensor, right: Tensor) -> None:
        """Count some more tokens."""
        self.nats += losses.double().sum().item()
        self.tokens += len(losses)
        self.right += int(right.sum())


@torch.inference_mode()
def likelihood_of(run: Run, batches: Iterable[Batch], look: Look | None = None) -> Likelihood:
    """How likely the targets of some batches are, each after the true tokens before it (or around it)."""
    total = Likelihood()
    for batch in batches:
        here = batch.to(run.device)
        sought = here.targets != IGNORE
        logits = run.model.head(run.model.hidden(**here.inputs)[sought]).float()  # (N, V): of nothing else
        losses = F.cross_entropy(logits, here.targets[sought], reduction="none")
        guesses = logits.argmax(-1)
        total.add(losses, guesses == here.targets[sought])
        if look:
            look(here, losses, guesses)
    return total


@dataclass(frozen=True, order=True)
class Passage:
    """One row of a batch, and how likely the model holds its targets."""

    score: float  # the mean of log p
    ids: list[int]
    wanted: list[int]  # the targets
    said: list[int]  # what the model holds likelier than all else, for each of them


class Extremes:
    """The likeliest and the least likely rows of all that it is shown."""

    def __init__(self, count: int) -> None:
        self.count, self.rows = count, 0
        self.kept: list[Passage] = []  # at most 2 x count, the worst first

    def look(self, batch: Batch, losses: Tensor, guesses: Tensor) -> None:
        """See a batch, with -log p and the model's guesses at all of its targets."""
        sizes = (batch.targets != IGNORE).sum(1).tolist()
        self.rows += len(sizes)
        parts = (torch.split(losses, sizes), torch.split(guesses, sizes), batch.inputs["ids"], batch.targets)
        for loss, said, ids, targets in zip(*parts, strict=True):
            if len(loss):
                wanted = targets[targets != IGNORE].tolist()
                self.kept.append(Passage(-loss.mean().item(), ids.tolist(), wanted, said.tolist()))
        self.kept.sort()
        del self.kept[self.count : -self.count]


@dataclass(frozen=True)
class Windows:
    """Stretches of a column in overlapping windows; `side.limit` is their length."""

    side: Side
    borders: Ints  # where each stretch that is read for itself begins, and where the last one ends

    @cached_property
    def stretches(self) -> tuple[Ints, Ints, Ints]:
        """Where windows begin, how many tokens they have, and how many of these were predicted before."""
        width, half = self.side.limit, self.side.limit // 2
        pairs = pairwise(self.borders.tolist())
        starts = [np.arange(begin, max(begin + 1, end - half), width - half) for begin, end in pairs]
        ends = np.repeat(self.borders[1:], [len(each) for each in starts])
        known = np.concatenate([np.where(each > each[0], half, 0) for each in starts])
        joined = np.concatenate(starts)
        return joined, np.minimum(width, ends - joined), known

    def cells(self, _: int) -> list[Cell]:
        """Windows of similar lengths together."""
        return cells_of(self.stretches[1][:, None], self.side.limit)

    def batch(self, rows: Rows, _: Key) -> Batch:
        """Some windows, and the token after each of their tokens that is not predicted elsewhere."""
        starts, lengths, known = (each[rows.members] for each in self.stretches)
        ids, targets = next_tokens(self.side, starts, lengths, rows.widths[0])
        targets[np.arange(rows.widths[0]) < known[:, None]] = IGNORE
        return batch_of(targets, ids=ids)


def count_text(pieces: Iterable[Piece], limit: int) -> tuple[int, int]:
    """Words and bytes of documents. The end of a line is a word, too: so WikiText-2's test has its 245,569."""
    words = size = documents = 0
    for text, last in pieces:
        words += len(text.split()) + text.count("\n") + (last and not text.endswith("\n"))
        size += len(text.encode())
        documents += last
        if limit and documents == limit:
            break
    return words, size
