"""The examples of a split as the loader needs them: in buckets, and ready to be collated. One function for each kind.

A dataset of padded examples collects examples of similar lengths in buckets; one of packed text has a single bucket of
blocks. `DATASETS` has a function for each value of `Task.batches`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clearhead.config import DataConfig, UserError, require
from clearhead.data.batches import (
    Batch,
    Dataset,
    Masking,
    PaddedExamples,
    RandomKey,
    TokenColumn,
    pad_documents,
    pad_labelled_texts,
    pad_masked_documents,
    pad_pairs,
    pad_sentence_pairs,
)
from clearhead.data.plan import Bucket, Ints, PlannedBatch, length_buckets
from clearhead.data.sources import open_corpus, where_is
from clearhead.data.store import Store
from clearhead.data.stream import Dialogues, PackedDialogues, Stream, pad_dialogues
from clearhead.data.subwords import COPIES, in_segmentations
from clearhead.text.tokenizer import Tokenizer, Tokenizers


class BucketedExamples:
    """Examples in buckets of similar lengths."""

    def __init__(self, examples: PaddedExamples, kept: Ints, budget: int, world: int) -> None:
        self.examples = examples
        buckets = length_buckets(examples.lengths[kept], budget, world)
        self._buckets = [Bucket(bucket.widths, kept[bucket.members]) for bucket in buckets]
        self.longest = int(examples.lengths[kept, 0].max())  # tokens of the longest sequence of the first column

    def buckets(self, _: int) -> list[Bucket]:
        """The buckets; they do not depend on the epoch."""
        return self._buckets

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """Collate the examples of a planned batch."""
        return self.examples.batch(planned, key)


@dataclass(frozen=True)
class EncodedSplit:
    """A tokenized split, and the settings of its batches."""

    config: DataConfig
    tokenizers: Tokenizers
    split: str
    store: Store
    labels: tuple[str, ...]  # classification: the name of each class
    world: int
    seed: int | None  # None: nothing is shuffled

    def column(self, name: str, tokenizer: Tokenizer | None = None) -> TokenColumn:
        """A column of the store, with the special tokens of the target's tokenizer unless another one is given."""
        return TokenColumn(self.store.ragged[name], tokenizer or self.tokenizers.target, self.config.max_length)

    def bucketed(self, examples: PaddedExamples) -> BucketedExamples:
        """The examples in buckets, without those that are too long."""
        return BucketedExamples(examples, self.kept(self.longest), self.config.batch_tokens, self.world)

    @property
    def longest(self) -> Ints:
        """(N,): the tokens of the longest sequence of each example."""
        return np.asarray(np.max([column.lengths for column in self.store.ragged.values()], axis=0))

    def kept(self, lengths: Ints) -> Ints:
        """The rows to use, given the length of each: all, those that are not too long, or an error (data.too_long)."""
        report = self.store.report
        limit = self.config.max_length
        long = lengths > limit
        what = f"examples of more than data.max_length = {limit} tokens"
        if self.config.too_long == "truncate":
            report.add(f"{what} truncated", count=int(long.sum()))
            return np.arange(len(lengths))
        if self.config.too_long == "error" and long.any():
            first = int(np.argmax(long))
            where = where_is(open_corpus(self.config), self.split, first)
            raise UserError(
                f"{where}: {lengths[first]:,} tokens, but data.max_length = {limit}; "
                f"raise it, or set data.too_long to 'drop' or 'truncate' ({long.sum():,} are too long)"
            )
        report.add(f"{what} dropped", count=int(long.sum()))
        require(
            not long.all(),
            f"all {len(lengths):,} {self.split} examples have more than data.max_length = {limit} tokens; raise it, or "
            "set data.too_long = 'truncate'",
        )
        return np.flatnonzero(~long)


def pairs(split: EncodedSplit) -> Dataset:
    """Pairs of source and target."""
    if split.seed is not None and split.config.bpe_dropout:
        return segmented_pairs(split, split.config.bpe_dropout, split.seed)
    return split.bucketed(pad_pairs(split.column("source", split.tokenizers.source), split.column("target")))


def segmented_pairs(split: EncodedSplit, rate: float, seed: int) -> Dataset:
    """Pairs of which an epoch has several segmentations each; those that become too long are left out."""
    limit = split.config.max_length
    kept = split.kept(split.longest)
    sides = {"source": split.tokenizers.source, "target": split.tokenizers.target}
    columns = [
        TokenColumn(in_segmentations(split.store.ragged[side], tokenizer, rate, (seed, number)), tokenizer, limit)
        for number, (side, tokenizer) in enumerate(sides.items())
    ]
    rows = np.concatenate([kept + copy * len(split.longest) for copy in range(COPIES)])
    if split.config.too_long != "truncate":
        rows = rows[np.max([column.array.lengths[rows] for column in columns], axis=0) <= limit]
    return BucketedExamples(pad_pairs(*columns), rows, split.config.batch_tokens, split.world)


def next_tokens(split: EncodedSplit) -> Dataset:
    """Running text in blocks; with data.pack = false, one document per row."""
    if split.config.pack:
        return Stream(split.column("text"), split.seed, split.config.document_mask)
    return split.bucketed(pad_documents(split.column("text")))


def masked_tokens(split: EncodedSplit) -> Dataset:
    """Running text with masked tokens in blocks; with data.pack = false, one document per row."""
    masking = Masking(split.tokenizers.target, split.config.mask_rate)
    if split.config.pack:
        return Stream(split.column("text"), split.seed, masking=masking)
    return split.bucketed(pad_masked_documents(split.column("text"), masking))


def labelled_texts(split: EncodedSplit) -> Dataset:
    """Texts and the numbers of their classes."""
    numbers = np.array([split.labels.index(name) for name in split.store.facts["labels"]], np.int64)
    return split.bucketed(pad_labelled_texts(split.column("text"), numbers[split.store.single["label"]]))


def dialogues(split: EncodedSplit) -> Dataset:
    """Conversations, several in a block; with data.pack = false, one per row."""
    kept = split.kept(split.store.ragged["ids"].lengths - 1)
    found = Dialogues(split.column("ids"), split.store.ragged["learn"], kept)
    if split.config.pack:
        return PackedDialogues(found, split.seed or 0)
    return BucketedExamples(pad_dialogues(found), np.arange(len(kept)), split.config.batch_tokens, split.world)


def sentence_pairs(split: EncodedSplit) -> Dataset:
    """Pairs of sentences and their scores, with negatives if there are any."""
    has_negatives = split.store.ragged["negative"].offsets[-1] > 0
    names = ("first", "second", "negative") if has_negatives else ("first", "second")
    return split.bucketed(pad_sentence_pairs(list(map(split.column, names)), split.store.single["score"]))


DATASETS: dict[str, Callable[[EncodedSplit], Dataset]] = {  # by `Task.batches`
    "pairs": pairs,
    "next tokens": next_tokens,
    "masked tokens": masked_tokens,
    "labelled texts": labelled_texts,
    "dialogues": dialogues,
    "sentence pairs": sentence_pairs,
}
