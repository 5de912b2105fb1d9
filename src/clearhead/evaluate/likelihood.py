"""The likelihood of a text under a model: every token is predicted once, however long the text is.

A text longer than one window is read in windows that overlap by half. In every window but the first, only the second
half is predicted, so every token has at least half a window of context, except at the beginning of the text.

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

from clearhead.data.batches import IGNORE, Batch, RandomKey, TokenColumn, batch_of
from clearhead.data.plan import Bucket, Ints, PlannedBatch, length_buckets
from clearhead.data.readers.documents import DocumentPart
from clearhead.runs import Run

Observer = Callable[[Batch, Tensor, Tensor], None]  # of a batch, and -log p (N,) and predictions (N,) of its targets


@dataclass
class Likelihood:
    """Sums over predicted tokens."""

    nats: float = 0.0  # the sum of -log p
    tokens: int = 0
    right: int = 0  # tokens that were the most likely prediction

    def add(self, losses: Tensor, right: Tensor) -> None:
        """Add some tokens to the sums."""
        self.nats += losses.double().sum().item()
        self.tokens += len(losses)
        self.right += int(right.sum())


@torch.inference_mode()
def likelihood_of(run: Run, batches: Iterable[Batch], observe: Observer | None = None) -> Likelihood:
    """The likelihood of the targets of batches, each given the true tokens before it (or around it)."""
    total = Likelihood()
    for batch in batches:
        here = batch.to(run.device)
        learned = here.targets != IGNORE
        logits = run.model.head(run.model.hidden(**here.inputs)[learned]).float()  # (N, V): of the targets only
        losses = F.cross_entropy(logits, here.targets[learned], reduction="none")
        predictions = logits.argmax(-1)
        total.add(losses, predictions == here.targets[learned])
        if observe:
            observe(here, losses, predictions)
    return total


@dataclass(frozen=True, order=True)
class Passage:
    """One row of a batch, and how likely its targets are."""

    score: float  # the mean of log p
    ids: list[int]
    targets: list[int]
    predictions: list[int]  # the most likely token for each target


class Extremes:
    """Keeps the most and the least likely rows of all batches that it observes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows = 0  # rows seen
        self.kept: list[Passage] = []  # at most 2 x count, the least likely first

    def observe(self, batch: Batch, losses: Tensor, predictions: Tensor) -> None:
        """Compare the rows of a batch, given -log p and prediction of each target, with those kept so far."""
        sizes = (batch.targets != IGNORE).sum(1).tolist()
        self.rows += len(sizes)
        parts = (torch.split(losses, sizes), torch.split(predictions, sizes), batch.inputs["ids"], batch.targets)
        for loss, predicted, ids, targets in zip(*parts, strict=True):
            if len(loss):
                wanted = targets[targets != IGNORE].tolist()
                self.kept.append(Passage(-loss.mean().item(), ids.tolist(), wanted, predicted.tolist()))
        self.kept.sort()
        del self.kept[self.count : -self.count]


@dataclass(frozen=True)
class Windows:
    """Documents of a column, cut into overlapping windows of `column.limit` tokens."""

    column: TokenColumn
    borders: Ints  # where each independently read stretch of text begins, and where the last one ends

    @cached_property
    def spans(self) -> tuple[Ints, Ints, Ints]:
        """The start of each window, its number of tokens, and how many of them another window has predicted."""
        width = self.column.limit
        half = width // 2
        pairs = pairwise(self.borders.tolist())
        starts = [np.arange(begin, max(begin + 1, end - half), width - half) for begin, end in pairs]
        ends = np.repeat(self.borders[1:], [len(each) for each in starts])
        known = np.concatenate([np.where(each > each[0], half, 0) for each in starts])
        joined = np.concatenate(starts)
        return joined, np.minimum(width, ends - joined), known

    def buckets(self, _: int) -> list[Bucket]:
        """Buckets of windows of similar lengths."""
        return length_buckets(self.spans[1][:, None], self.column.limit)

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """A batch of windows; targets that another window predicts are ignored."""
        starts, lengths, known = (each[planned.members] for each in self.spans)
        ids, targets = self.column.shifted_slices(starts, lengths, planned.widths[0])
        targets[np.arange(planned.widths[0]) < known[:, None]] = IGNORE
        return batch_of(targets, ids=ids)


def count_text(parts: Iterable[DocumentPart], limit: int) -> tuple[int, int]:
    """Count the words and bytes of documents; the end of a line is a word, too, as usual for WikiText."""
    words = size = documents = 0
    for text, last in parts:
        words += len(text.split()) + text.count("\n") + (last and not text.endswith("\n"))
        size += len(text.encode())
        documents += last
        if limit and documents == limit:
            break
    return words, size
