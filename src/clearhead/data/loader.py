"""From settings to batches, and onto the device.

    batches = open_batches(config, tokenizer, "train", seed=0)
    for batch in prefetch(batches.epoch(epoch, start=step), device):
        loss(model(**batch.inputs), batch.targets)

The batches of an epoch are a pure function of its number (see plan.py), so a resumed run can start at any step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from clearhead.config import DataConfig, UserError, require
from clearhead.data.background import in_background
from clearhead.data.batches import Batch, Dataset, RandomKey
from clearhead.data.datasets import DATASETS, BucketedExamples, EncodedSplit
from clearhead.data.encode import open_store_of
from clearhead.data.plan import PlannedBatch, batch_borders, plan
from clearhead.data.readers.files import listed
from clearhead.data.report import Report
from clearhead.data.sources import open_corpus, where_is
from clearhead.data.store import Store
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizer, Tokenizers

BATCHES_AHEAD = 4  # batches that are prepared in advance for a GPU


@dataclass(frozen=True)
class Batches:
    """The batches of a split for one rank."""

    dataset: Dataset
    budget: int  # tokens of one batch
    seed: int
    rank: int
    world: int
    shuffle: bool  # whether batches differ between epochs
    report: Report = field(default_factory=Report)  # what was left out or changed
    labels: tuple[str, ...] = ()  # classification: the name of each class
    content: str = ""  # a hash of the tokenized split

    @property
    def longest_source(self) -> int:
        """Tokens of the longest example (of pairs: of the longest source); 0 for packed text."""
        return self.dataset.longest if isinstance(self.dataset, BucketedExamples) else 0

    def steps(self, epoch: int) -> int:
        """The number of batches that each rank has in an epoch."""
        buckets = self.dataset.buckets(epoch)
        return sum(len(batch_borders(bucket, self.budget, self.world)) - 1 for bucket in buckets) // self.world

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a step on: the same for the same seed, epoch, rank and world size."""
        key = (self.seed, epoch) if self.shuffle else None
        steps = plan(self.dataset.buckets(epoch), self.budget, key, self.rank, self.world)
        for step in range(start, len(steps)):
            random_key = RandomKey(self.seed, epoch if self.shuffle else 0, step * self.world + self.rank)
            planned = steps[step]
            if len(planned.members):
                yield self.dataset.batch(planned, random_key)
            else:
                bucket = self.dataset.buckets(epoch)[0]
                yield self.dataset.batch(PlannedBatch(bucket.members[:1], bucket.widths), random_key).blank()


def open_batches(
    config: DataConfig,
    tokenizer: Tokenizer | Tokenizers,
    split: str = "train",
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
) -> Batches:
    """Open the batches of a split: those of train are shuffled in every epoch, those of other splits never."""
    assert 0 <= rank < world
    tokenizers = tokenizer if isinstance(tokenizer, Tokenizers) else Tokenizers(tokenizer, tokenizer)
    store = open_store_of(config, tokenizers, split)
    shuffle = split == "train"
    task = TASKS[config.task]
    labels = labels_of(config, tokenizers, split, store) if task.example == "labelled text" else ()
    encoded = EncodedSplit(config, tokenizers, split, store, labels, world, seed if shuffle else None)
    dataset = DATASETS[task.batches](encoded)
    return Batches(dataset, config.batch_tokens, seed, rank, world, shuffle, store.report, labels, store.content)


def labels_of(config: DataConfig, tokenizers: Tokenizers, split: str, store: Store) -> tuple[str, ...]:
    """The names of the classes of train, sorted; a class that only another split has is an error."""
    train = store if split == "train" else open_store_of(config, tokenizers, "train")
    names = tuple(sorted(train.facts["labels"]))
    sorted_rows = "; data.hold_out takes the end of the file: shuffle its rows" if config.hold_out else ""
    require(
        len(names) > 1,
        f"data.label = {config.label!r}: every example of train has the label {', '.join(names)}; a classifier needs "
        f"two or more labels{sorted_rows}",
    )
    for name in store.facts["labels"]:
        if name not in names:
            raise UserError(
                f"{where_is(open_corpus(config), split, store.first_of_label(name))}: label {name!r} never appears in "
                f"train, which has {listed(names)}; fix the label, or train on some of its examples"
            )
    return names


def prefetch(batches: Iterator[Batch], device: torch.device | str) -> Iterator[Batch]:
    """Move batches to a device. For a GPU, a thread prepares them in pinned memory, so that copies overlap computation.

    On a CPU a batch takes well under a millisecond: a thread would gain nothing.
    """
    if torch.device(device).type == "cuda":
        batches = in_background((batch.pin() for batch in batches), BATCHES_AHEAD)
    for batch in batches:
        yield batch.to(device)
