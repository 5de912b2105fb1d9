"""Token ids to blocks without padding: running text in blocks of equal length, and packed conversations.

Running text. All documents are concatenated to N tokens. An epoch divides them into blocks of T tokens from a random
offset on, so that the borders differ between epochs; the short blocks before the offset and at the end are padded. In
each epoch, every token is an input once and a target once.

Conversations. Each is put undivided into the fullest block that has space for it, the longest ones first. `documents`
numbers the conversations of a block; attention is limited to tokens of the same number, so nothing leaks between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from clearhead.data.batches import IGNORE, Batch, Bools, Masking, PaddedExamples, RandomKey, TokenColumn, batch_of, take
from clearhead.data.plan import Bucket, Ints, PlannedBatch, randoms, shuffled
from clearhead.data.store import RaggedArray


@dataclass(frozen=True)
class Stream:
    """Running text in blocks of `column.limit` tokens."""

    column: TokenColumn
    seed: int | None  # None: no random offset
    document_mask: bool = False
    masking: Masking | None = None

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return int(self.column.array.offsets[-1])

    def offset(self, epoch: int) -> int:
        """The start of the first whole block of an epoch."""
        return 0 if self.seed is None else random_offset(self.seed, epoch, self.column.limit)

    def buckets(self, epoch: int) -> list[Bucket]:
        """One bucket, since all blocks have the same length."""
        offset = self.offset(epoch)
        length = self.column.limit
        count = (offset > 0) + max(0, -(-(self.tokens - offset) // length))
        return [Bucket((length,), np.arange(count))]

    def span(self, blocks: Ints, epoch: int) -> tuple[Ints, Ints]:
        """The start of blocks and their number of tokens."""
        offset = self.offset(epoch)
        length = self.column.limit
        begins = offset + (blocks - (offset > 0)) * length  # negative for the short block before the offset
        ends = np.minimum(begins + length, self.tokens)
        begins = np.maximum(begins, 0)
        return begins, ends - begins

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """Blocks, and the token after each of their tokens; or, with masking, blocks with masked tokens."""
        length = self.column.limit
        starts, lengths = self.span(planned.members, key.epoch)
        if self.masking:
            real = np.arange(length) < lengths[:, None]
            ids = np.where(real, take(self.column.array.values, starts, length), self.column.pad)
            masked, targets = self.masking.apply(ids, real, key)
            return batch_of(targets, ids=masked) if real.all() else batch_of(targets, ids=masked, real=real)
        ids, targets = self.column.shifted_slices(starts, lengths, length)
        if not self.document_mask:
            return batch_of(targets, ids=ids)
        real = np.arange(length) < lengths[:, None]
        return batch_of(targets, ids=ids, documents=number_documents(ids == self.column.start, real))


@lru_cache(maxsize=4)  # every batch of an epoch needs it
def random_offset(seed: int, epoch: int, length: int) -> int:
    """A random number below the length of a block."""
    return int(randoms(1, seed, epoch)[0] % np.uint64(length))


def number_documents(begins: Bools, real: Bools) -> Ints:
    """The number of the document of each token, given where documents begin; padding gets another number."""
    return np.cumsum(begins & real, axis=1, dtype=np.int64) + (~real).astype(np.int64)


def pack_into_bins(lengths: Ints, capacity: int, seed: int) -> tuple[Ints, Ints]:
    """Best-fit bin packing, longest items first: the items of all bins, concatenated, and where each bin begins.

    `bins_with[r]` lists the bins that have r tokens of space left, and bit r of `spaces` is set if there are any. So
    the fullest bin that has enough space is found by two operations on one integer.
    """
    order = shuffled(len(lengths), seed)
    order = order[np.argsort(-lengths[order], kind="stable")]
    bins_with: list[list[int]] = [[] for _ in range(capacity + 1)]
    spaces = 0
    count = 0  # bins so far
    bin_of = np.empty(len(lengths), np.int64)
    for item, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        assert 0 < length <= capacity
        sufficient = spaces >> length
        if sufficient:
            space = length + (sufficient & -sufficient).bit_length() - 1
            number = bins_with[space].pop()
            if not bins_with[space]:
                spaces ^= 1 << space
        else:
            space = capacity
            number = count
            count += 1
        bin_of[item] = number
        if left := space - length:
            bins_with[left].append(number)
            spaces |= 1 << left
    members = np.argsort(bin_of, kind="stable")
    return members, np.searchsorted(bin_of[members], np.arange(count + 1))


class Dialogues:
    """Tokenized conversations, in which the tokens of the assistant are learned."""

    def __init__(self, column: TokenColumn, learn: RaggedArray, kept: Ints) -> None:
        self.column = column
        self.learn = learn  # 1 for each token that is learned
        self.kept = kept  # the rows that are used
        # The last token of a conversation is only a target, so n tokens have n - 1 inputs.
        self.lengths = np.minimum(column.array.lengths[kept] - 1, column.limit)

    def fill(self, members: Ints, rows: Ints, columns: Ints, shape: tuple[int, int]) -> tuple[Ints, Ints]:
        """Inputs and targets of this shape, in which each conversation begins at its row and column."""
        sizes = self.lengths[members]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        source = np.repeat(self.column.array.offsets[self.kept[members]], sizes) + within
        place = (np.repeat(rows, sizes), np.repeat(columns, sizes) + within)
        ids = np.full(shape, self.column.pad, np.int64)
        targets = np.full(shape, IGNORE, np.int64)
        ids[place] = self.column.array.values[source]
        following = self.column.array.values[source + 1].astype(np.int64)
        targets[place] = np.where(self.learn.values[source + 1], following, IGNORE)
        return ids, targets


def pad_dialogues(dialogues: Dialogues) -> PaddedExamples:
    """One conversation per row, and the token after each of its tokens if it is learned."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        rows = np.arange(len(planned.members))
        shape = (len(rows), planned.widths[0])
        ids, targets = dialogues.fill(planned.members, rows, np.zeros_like(rows), shape)
        return batch_of(targets, ids=ids)

    return PaddedExamples(dialogues.lengths[:, None], batch)


class PackedDialogues:
    """Several conversations per row; attention stays within each."""

    def __init__(self, dialogues: Dialogues, seed: int) -> None:
        self.dialogues = dialogues
        self.length = dialogues.column.limit
        self.members, self.borders = pack_into_bins(dialogues.lengths, self.length, seed)

    def buckets(self, _: int) -> list[Bucket]:
        """One bucket, since all blocks have the same length."""
        return [Bucket((self.length,), np.arange(len(self.borders) - 1))]

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Blocks of conversations, and the number of the conversation of each token."""
        blocks = [self.members[self.borders[block] : self.borders[block + 1]] for block in planned.members]
        members = np.concatenate(blocks)
        rows = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        sizes = [self.dialogues.lengths[block] for block in blocks]
        columns = np.concatenate([np.cumsum(size) - size for size in sizes])
        shape = (len(blocks), self.length)
        ids, targets = self.dialogues.fill(members, rows, columns, shape)
        begins = np.zeros(shape, bool)
        begins[rows, columns] = True
        real = np.arange(self.length) < np.array([size.sum() for size in sizes])[:, None]
        return batch_of(targets, ids=ids, documents=number_documents(begins, real))
