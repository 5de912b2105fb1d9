"""Blocks without padding: running text cut into equal lengths, and dialogues packed side by side.

Running text. All documents stand in one row of N tokens. An epoch cuts it into blocks of T tokens, beginning at a
random place (so that the cuts fall elsewhere in every epoch); the short stretch before that place and the short one at
the end are padded. Every token is the input once, and what follows it the target once: nothing is lost or repeated.

Dialogues. Each goes whole into the fullest block that still has room for it, longest ones first. `documents` numbers
them within their block; a token sees only tokens of its own number, so nothing leaks across.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from clearhead.data.batches import IGNORE, Batch, Bools, Masking, RandomKey, TokenColumn, batch_of, next_tokens, take
from clearhead.data.plan import Bucket, Ints, PlannedBatch, randoms, shuffled
from clearhead.data.store import RaggedArray


@dataclass(frozen=True)
class Stream:
    """Running text in blocks; `column.limit` is their length."""

    column: TokenColumn
    seed: int | None  # None: every epoch begins at the first token, in order
    document_mask: bool = False
    masking: Masking | None = None

    @property
    def tokens(self) -> int:
        """How many there are to visit."""
        return int(self.column.array.offsets[-1])

    def offset(self, epoch: int) -> int:
        """Where the first whole block of an epoch begins."""
        return 0 if self.seed is None else first_cut(self.seed, epoch, self.column.limit)

    def buckets(self, epoch: int) -> list[Bucket]:
        """One bucket: all blocks are alike."""
        offset, length = self.offset(epoch), self.column.limit
        count = (offset > 0) + max(0, -(-(self.tokens - offset) // length))
        return [Bucket((length,), np.arange(count))]

    def stretch(self, blocks: Ints, epoch: int) -> tuple[Ints, Ints]:
        """Where blocks begin and how many tokens they have."""
        offset, length = self.offset(epoch), self.column.limit
        begins = offset + (blocks - (offset > 0)) * length  # the short block before the offset would begin below zero
        ends = np.minimum(begins + length, self.tokens)
        return np.maximum(begins, 0), ends - np.maximum(begins, 0)

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """Blocks and the token after each of their tokens; or, with masking, blocks with some tokens hidden."""
        length = self.column.limit
        starts, lengths = self.stretch(planned.members, key.epoch)
        if self.masking:
            real = np.arange(length) < lengths[:, None]
            ids = np.where(real, take(self.column.array.values, starts, length), self.column.pad)
            hidden, targets = self.masking.hide(ids, real, key)
            return batch_of(targets, ids=hidden) if real.all() else batch_of(targets, ids=hidden, real=real)
        ids, targets = next_tokens(self.column, starts, lengths, length)
        if not self.document_mask:
            return batch_of(targets, ids=ids)
        real = np.arange(length) < lengths[:, None]
        return batch_of(targets, ids=ids, documents=number_documents(ids == self.column.start, real))


@lru_cache(maxsize=4)  # every batch of an epoch asks
def first_cut(seed: int, epoch: int, length: int) -> int:
    """A random place within a block's length."""
    return int(randoms(1, seed, epoch)[0] % np.uint64(length))


def number_documents(begins: Bools, real: Bools) -> Ints:
    """The number of the document each token belongs to, from where documents begin; padding is one more document."""
    return np.cumsum(begins & real, axis=1, dtype=np.int64) + (~real).astype(np.int64)


def pack(lengths: Ints, capacity: int, seed: int) -> tuple[Ints, Ints]:
    """Items in bins of a capacity, best fit, longest first: the items bin after bin, and where each bin begins.

    Bins with r places left wait in `rooms[r]`; the bits of `open_rooms` say where any wait, so that finding the
    tightest one is a matter of two operations on one integer.
    """
    order = shuffled(len(lengths), seed)
    order = order[np.argsort(-lengths[order], kind="stable")]
    rooms: list[list[int]] = [[] for _ in range(capacity + 1)]
    open_rooms, count = 0, 0
    bins = np.empty(len(lengths), np.int64)
    for item, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        assert 0 < length <= capacity
        fitting = open_rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            number = rooms[room].pop()
            if not rooms[room]:
                open_rooms ^= 1 << room
        else:
            room, number, count = capacity, count, count + 1
        bins[item] = number
        if left := room - length:
            rooms[left].append(number)
            open_rooms |= 1 << left
    members = np.argsort(bins, kind="stable")
    return members, np.searchsorted(bins[members], np.arange(count + 1))


class Dialogues:
    """Conversations: in each, what the assistant says is to be learned."""

    def __init__(self, column: TokenColumn, learn: RaggedArray, kept: Ints) -> None:
        # The last token of a dialogue is only a target, so n tokens take n - 1 places.
        self.column, self.learn, self.kept = column, learn, kept
        self.places = np.minimum(column.array.lengths[kept] - 1, column.limit)

    def fill(self, members: Ints, rows: Ints, columns: Ints, shape: tuple[int, int]) -> tuple[Ints, Ints]:
        """Inputs and targets of a shape, with each dialogue at its row and column."""
        sizes = self.places[members]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        source = np.repeat(self.column.array.offsets[self.kept[members]], sizes) + within
        place = (np.repeat(rows, sizes), np.repeat(columns, sizes) + within)
        ids, targets = np.full(shape, self.column.pad, np.int64), np.full(shape, IGNORE, np.int64)
        ids[place] = self.column.array.values[source]
        following = self.column.array.values[source + 1].astype(np.int64)
        targets[place] = np.where(self.learn.values[source + 1], following, IGNORE)
        return ids, targets


@dataclass(frozen=True)
class PaddedDialogues:
    """A dialogue a row."""

    dialogues: Dialogues

    @cached_property
    def lengths(self) -> Ints:
        """(N, 1)."""
        return self.dialogues.places[:, None]

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Each token, and the one after it where that is to be learned."""
        count = len(planned.members)
        shape = (count, planned.widths[0])
        ids, targets = self.dialogues.fill(planned.members, np.arange(count), np.zeros(count, np.int64), shape)
        return batch_of(targets, ids=ids)


class PackedDialogues:
    """Several dialogues a row, each blind to the others."""

    def __init__(self, dialogues: Dialogues, seed: int) -> None:
        self.dialogues, self.length = dialogues, dialogues.column.limit
        self.members, self.borders = pack(dialogues.places, self.length, seed)

    def buckets(self, _: int) -> list[Bucket]:
        """One bucket: all blocks are alike."""
        return [Bucket((self.length,), np.arange(len(self.borders) - 1))]

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Blocks of dialogues, and which dialogue each token belongs to."""
        parts = [self.members[self.borders[block] : self.borders[block + 1]] for block in planned.members]
        members = np.concatenate(parts)
        row = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        sizes = [self.dialogues.places[part] for part in parts]
        columns = np.concatenate([np.cumsum(size) - size for size in sizes])
        shape = (len(parts), self.length)
        ids, targets = self.dialogues.fill(members, row, columns, shape)
        begins = np.zeros(shape, bool)
        begins[row, columns] = True
        real = np.arange(self.length) < np.array([size.sum() for size in sizes])[:, None]
        documents = number_documents(begins, real)
        return batch_of(targets, ids=ids, documents=documents)
