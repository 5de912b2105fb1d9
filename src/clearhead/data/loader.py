"""From settings to batches, and onto the device.

batches = open_batches(config, tokenizer, "train", seed=0)
for batch in prefetch(batches.epoch(epoch, start=step), device):
loss(model(**batch.inputs), batch.targets)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from clearhead.config import DataConfig, UserError, require
from clearhead.data.background import in_background
from clearhead.data.batches import (
    Batch,
    Dataset,
    Documents,
    LabelledTexts,
    MaskedDocuments,
    Masking,
    Pairs,
    RandomKey,
    SentencePairs,
    TokenColumn,
)
from clearhead.data.encode import open_store_of
from clearhead.data.plan import Bucket, Ints, PlannedBatch, batch_sizes, length_buckets, plan
from clearhead.data.report import Report
from clearhead.data.sources import open_corpus, where_is
from clearhead.data.store import Store
from clearhead.data.stream import Dialogues, PackedDialogues, PaddedDialogues, Stream
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizer, Tokenizers

AHEAD = 4  # batches that wait, ready, for a GPU


class EncodedExamples(Protocol):
    """Examples with known lengths."""

    @property
    def lengths(self) -> Ints:
        """(N, sides)."""

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """The batch of some examples."""


class BucketedExamples:
    """Examples of similar lengths together."""

    def __init__(self, examples: EncodedExamples, kept: Ints, budget: int, world: int) -> None:
        self.examples = examples
        buckets = length_buckets(examples.lengths[kept], budget, world)
        self._buckets = [Bucket(bucket.widths, kept[bucket.members]) for bucket in buckets]
        self.longest = int(examples.lengths[kept, 0].max())  # tokens of the first side

    def buckets(self, _: int) -> list[Bucket]:
        """The same in every epoch."""
        return self._buckets

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """The batch of some examples."""
        return self.examples.batch(planned, key)


@dataclass(frozen=True)
class Batches:
    """The batches of one split, for one rank of a world."""

    dataset: Dataset
    budget: int  # tokens of one batch
    seed: int
    rank: int
    world: int
    shuffle: bool  # other batches in another order each epoch; else always the same
    report: Report = field(default_factory=Report)  # what happened to the examples on the way
    labels: tuple[str, ...] = ()  # classification: the name of each class

    @property
    def longest_source(self) -> int:
        """Tokens of the longest example, of pairs of the longest source; 0 where text is cut into blocks anyway."""
        return self.dataset.longest if isinstance(self.dataset, BucketedExamples) else 0

    def steps(self, epoch: int) -> int:
        """How many batches each rank has in an epoch."""
        buckets = self.dataset.buckets(epoch)
        return sum(len(batch_sizes(bucket, self.budget, self.world)) - 1 for bucket in buckets) // self.world

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a step on: always the same ones for the same seed, epoch, rank and world."""
        key = (self.seed, epoch) if self.shuffle else None
        steps = plan(self.dataset.buckets(epoch), self.budget, key, self.rank, self.world)
        for step in range(start, len(steps)):
            number = RandomKey(self.seed, epoch if self.shuffle else 0, step * self.world + self.rank)
            planned = steps[step]
            if len(planned.members):
                yield self.dataset.batch(planned, number)
            else:
                any_row = self.dataset.buckets(epoch)[0]
                yield self.dataset.batch(PlannedBatch(any_row.members[:1], any_row.widths), number).blank()


def open_batches(
    config: DataConfig,
    tokenizer: Tokenizer | Tokenizers,
    split: str = "train",
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
) -> Batches:
    """The batches of a split: shuffled anew in every epoch for train, always the same for the others."""
    assert 0 <= rank < world
    both = tokenizer if isinstance(tokenizer, Tokenizers) else Tokenizers(tokenizer, tokenizer)
    store = open_store_of(config, both, split)
    shuffle = split == "train"
    task = TASKS[config.task]
    labels = labels_of(config, both, split, store) if task.example == "labelled text" else ()
    encoded = EncodedSplit(config, both, split, store, labels, world, seed if shuffle else None)
    dataset = DATASETS[task.batches](encoded)
    return Batches(dataset, config.batch_tokens, seed, rank, world, shuffle, store.report, labels)


@dataclass(frozen=True)
class EncodedSplit:
    """A tokenized split, and the settings that its batches are made with."""

    config: DataConfig
    tokenizers: Tokenizers
    split: str
    store: Store
    labels: tuple[str, ...]  # classification: the name of each class
    world: int
    seed: int | None  # None: nothing is shuffled

    def column(self, name: str, tokenizer: Tokenizer | None = None) -> TokenColumn:
        """A column of the store; its ids are those of the target's tokenizer unless another is given."""
        return TokenColumn(self.store.ragged[name], tokenizer or self.tokenizers.target, self.config.max_length)

    def bucketed(self, examples: EncodedExamples) -> BucketedExamples:
        """Examples in batches of similar lengths, without those that are too long."""
        longest = np.max([column.lengths for column in self.store.ragged.values()], axis=0)
        return BucketedExamples(examples, self.kept(longest), self.config.batch_tokens, self.world)

    def kept(self, lengths: Ints) -> Ints:
        """The rows to use, of examples of these lengths."""
        return kept_rows(self.config, self.split, self.store.report, lengths)


def pairs(split: EncodedSplit) -> Dataset:
    """Sources and targets."""
    return split.bucketed(Pairs(split.column("source", split.tokenizers.source), split.column("target")))


def next_token_blocks(split: EncodedSplit) -> Dataset:
    """Running text in blocks, or with data.pack = false a document a row."""
    if split.config.pack:
        return Stream(split.column("text"), split.seed, split.config.document_mask)
    return split.bucketed(Documents(split.column("text")))


def masked_blocks(split: EncodedSplit) -> Dataset:
    """Text with masked tokens: in blocks, or with data.pack = false a document a row."""
    masking = Masking(split.tokenizers.target, split.config.mask_rate)
    if split.config.pack:
        return Stream(split.column("text"), split.seed, masking=masking)
    return split.bucketed(MaskedDocuments(split.column("text"), masking))


def labelled_texts(split: EncodedSplit) -> Dataset:
    """Texts and the numbers of their classes."""
    numbers = np.array([split.labels.index(name) for name in split.store.facts["labels"]], np.int64)
    return split.bucketed(LabelledTexts(split.column("text"), numbers[split.store.single["label"]]))


def dialogues(split: EncodedSplit) -> Dataset:
    """Conversations: several in a block, or with data.pack = false one a row."""
    kept = split.kept(split.store.ragged["ids"].lengths - 1)
    found = Dialogues(split.column("ids"), split.store.ragged["learn"], kept)
    if split.config.pack:
        return PackedDialogues(found, split.seed or 0)
    return BucketedExamples(PaddedDialogues(found), np.arange(len(kept)), split.config.batch_tokens, split.world)


def sentence_pairs(split: EncodedSplit) -> Dataset:
    """First sentences, second sentences and, if there are any, negatives, with their scores."""
    has_negatives = split.store.ragged["negative"].offsets[-1] > 0
    names = ("first", "second", "negative") if has_negatives else ("first", "second")
    return split.bucketed(SentencePairs(tuple(map(split.column, names)), split.store.single["score"]))


DATASETS: dict[str, Callable[[EncodedSplit], Dataset]] = {  # by `Task.batches`
    "pairs": pairs,
    "next tokens": next_token_blocks,
    "masked tokens": masked_blocks,
    "labelled texts": labelled_texts,
    "dialogues": dialogues,
    "sentence pairs": sentence_pairs,
}


def kept_rows(config: DataConfig, split: str, report: Report, lengths: Ints) -> Ints:
    """The rows to use, where some are longer than data.max_length: all, the others, or none and an error."""
    limit = config.max_length
    long = lengths > limit
    what = f"examples of more than data.max_length = {limit} tokens"
    if config.too_long == "truncate":
        report.add(f"{what} shortened", count=int(long.sum()))
        return np.arange(len(lengths))
    if config.too_long == "error" and long.any():
        first = int(np.argmax(long))
        raise UserError(
            f"{where_is(open_corpus(config), split, first)}: {lengths[first]:,} tokens, but data.max_length = {limit}; "
            f"raise it, or set data.too_long to 'drop' or 'truncate' ({long.sum():,} are too long)"
        )
    report.add(f"{what} dropped", count=int(long.sum()))
    require(not long.all(), f"all {len(lengths):,} {split} {what}; raise it or set data.too_long = 'truncate'")
    return np.flatnonzero(~long)


def labels_of(config: DataConfig, both: Tokenizers, split: str, store: Store) -> tuple[str, ...]:
    """The names of the classes that train has, sorted; a split with any other is an error."""
    train = store if split == "train" else open_store_of(config, both, "train")
    names = tuple(sorted(train.facts["labels"]))
    require(len(names) > 1, f"data.label: all of train is {', '.join(names)}; there is nothing to tell apart")
    for name in store.facts["labels"]:
        if name not in names:
            raise UserError(
                f"{where_is(open_corpus(config), split, store.first_of_label(name))}: label {name!r} never appears in "
                f"train, which has {', '.join(names[:20])}; mend the label or train on some of its examples"
            )
    return names


def prefetch(batches: Iterator[Batch], device: torch.device | str) -> Iterator[Batch]:
    """The batches on a device. For a GPU a thread prepares them ahead in pinned memory, and copying overlaps computing.

    Elsewhere a batch is made in well under a millisecond by the thread that uses it: there is nothing to gain.
    """
    if torch.device(device).type == "cuda":
        batches = in_background((batch.pin() for batch in batches), AHEAD)
    for batch in batches:
        yield batch.to(device)
