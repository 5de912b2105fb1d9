"""One kind of batch for every task: what the model is called with, and what it should answer.

Shapes: B rows, T tokens (padded on the right), S source tokens. -100 in the targets means: nothing to learn here.

    task             inputs                        targets
    translation      source, source_real, target   (B, T) the target's next token, [end] last
    language         ids                           (B, T) the next token, [end] after a document
    masked           ids, real                     (B, T) the token that was hidden, -100 elsewhere
    classification   ids, real                     (B,)   the class
    chat             ids (packed: documents)       (B, T) the next token where the assistant speaks
    similarity       ids, real: all first          (B,)   how close first and second are, 0 to 1
                     sentences, all second ones,
                     then any negatives
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clearhead.data.plan import Bucket, Ints, PlannedBatch, randoms
from clearhead.data.store import Array, RaggedArray
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_formats import SPECIALS

IGNORE = -100  # as in torch's cross entropy
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Batch:
    """`model(**batch.inputs)` is to become `batch.targets`."""

    inputs: dict[str, Tensor]
    targets: Tensor
    tokens: int = -1  # how many targets there are to learn; counted here unless it is given

    def __post_init__(self) -> None:
        if self.tokens < 0:
            object.__setattr__(self, "tokens", int((self.targets != IGNORE).sum()))

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device; from pinned memory the copy runs while the host goes on."""
        inputs = {name: tensor.to(device, non_blocking=True) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.targets.to(device, non_blocking=True), self.tokens)

    def pin(self) -> Batch:
        """The same batch in memory that a GPU can copy from by itself."""
        inputs = {name: tensor.pin_memory() for name, tensor in self.inputs.items()}
        return Batch(inputs, self.targets.pin_memory(), self.tokens)

    def blank(self) -> Batch:
        """The same batch with nothing to learn: for a rank that has no examples left while others have."""
        return replace(self, targets=torch.full_like(self.targets, IGNORE), tokens=0)


class RandomKey(NamedTuple):
    """What the random choices inside a batch depend on."""

    seed: int
    epoch: int
    number: int  # of the batch, over all ranks


class Dataset(Protocol):
    """Examples of one split that can be cut into batches."""

    def buckets(self, epoch: int) -> list[Bucket]:
        """What there is to draw batches from."""

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """The batch of some examples."""


class TokenColumn:
    """A column of sequences, none longer than `limit`."""

    def __init__(self, array: RaggedArray, tokenizer: Tokenizer, limit: int) -> None:
        self.array, self.limit = array, limit
        self.pad, self.start, self.end = tokenizer.pad, tokenizer.start, tokenizer.end
        self.lengths = np.minimum(array.lengths, limit)

    def read(self, rows: Ints, width: int) -> tuple[Ints, Bools]:
        """Sequences, padded (B, width), and where they are real; one that was shortened still has its [end]."""
        starts = self.array.offsets[rows]
        real = np.arange(width) < self.lengths[rows, None]
        ids = take(self.array.values, starts, width)
        ids[~real] = self.pad
        shortened = np.flatnonzero(self.array.offsets[rows + 1] - starts > self.limit)
        if len(shortened):  # then width is the limit
            ids[shortened, -1] = self.end
        return ids, real

    def read_shifted(self, rows: Ints, width: int) -> tuple[Ints, Ints]:
        """Inputs (B, width) that begin with [start], and the targets: the token after each, [end] after the last."""
        return next_tokens(self, self.array.offsets[rows], self.lengths[rows], width)


def take(values: Array, starts: Array, width: int) -> Ints:
    """Stretches of a row of numbers (B, width); beyond its end, its last number again."""
    count = len(values) - width + 1  # stretches there are, each one number further than the one before
    if int(np.max(starts)) < count:
        stretches = np.ndarray((count, width), values.dtype, values, 0, values.strides * 2)
        return stretches[starts].astype(np.int64)  # whole stretches are copied three times faster than single numbers
    places = np.asarray(starts)[:, None] + np.arange(width)
    return values[np.minimum(places, len(values) - 1)].astype(np.int64)


def next_tokens(column: TokenColumn, starts: Array, lengths: Array, width: int) -> tuple[Ints, Ints]:
    """Stretches (B, width) of a column whose sequences begin with [start], and the token that follows each token.

    The [start] of the next sequence is the [end] of this one.
    """
    block = take(column.array.values, starts, width + 1)
    ids, targets = block[:, :-1].copy(), block[:, 1:].copy()
    targets[targets == column.start] = column.end
    if int(np.min(lengths)) < width:
        padding = np.arange(width) >= lengths[:, None]
        ids[padding] = column.pad
        targets[padding] = IGNORE
    return ids, targets


def batch_of(targets: npt.NDArray[Any], **inputs: npt.NDArray[Any]) -> Batch:
    """A batch whose tensors share the memory of arrays."""
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    return Batch(tensors, torch.from_numpy(targets), int(np.count_nonzero(targets != IGNORE)))


@dataclass(frozen=True)
class Pairs:
    """Translation, summaries."""

    source: TokenColumn
    target: TokenColumn

    @cached_property
    def lengths(self) -> Ints:
        """(N, 2): both sides count."""
        return np.stack([self.source.lengths, self.target.lengths], axis=1)

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Source and target, each padded to its own width."""
        source, real = self.source.read(planned.members, planned.widths[0])
        target, targets = self.target.read_shifted(planned.members, planned.widths[1])
        return batch_of(targets, source=source, source_real=real, target=target)


@dataclass(frozen=True)
class Documents:
    """Language modelling without packing: a document a row."""

    text: TokenColumn

    @cached_property
    def lengths(self) -> Ints:
        """(N, 1)."""
        return self.text.lengths[:, None]

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Each token, and the one after it."""
        ids, targets = self.text.read_shifted(planned.members, planned.widths[0])
        return batch_of(targets, ids=ids)


class Masking:
    """BERT's game: hide some tokens, guess them. 80 % become [mask], 10 % any other word, 10 % stay as they are."""

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        self.rate, self.mask = rate, tokenizer.mask
        special = [tokenizer.special(name) for name in SPECIALS if tokenizer.has(name)]
        self.ordinary = np.setdiff1d(np.arange(tokenizer.vocab), special)
        self.is_ordinary = np.isin(np.arange(tokenizer.vocab), self.ordinary)

    def hide(self, ids: Ints, real: Bools, key: RandomKey) -> tuple[Ints, Ints]:
        """Inputs with some tokens hidden, and those tokens as targets; special tokens stay."""
        draws = randoms(2 * ids.size, *key).reshape(2, *ids.shape)
        chosen = (draws[0] >> np.uint64(32)) < np.uint64(self.rate * 2**32)
        chosen &= self.is_ordinary[ids] & real
        fate = (draws[0] & np.uint64(2**32 - 1)).astype(np.float64) / 2**32
        words = self.ordinary[draws[1] % np.uint64(len(self.ordinary))]
        hidden = np.where(fate < 0.8, self.mask, np.where(fate < 0.9, words, ids))
        return np.where(chosen, hidden, ids), np.where(chosen, ids, IGNORE)


@dataclass(frozen=True)
class MaskedDocuments:
    """Masked language modelling without packing: a text a row."""

    text: TokenColumn
    masking: Masking

    @cached_property
    def lengths(self) -> Ints:
        """(N, 1)."""
        return self.text.lengths[:, None]

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """Texts with some tokens hidden, other ones in every epoch."""
        ids, real = self.text.read(planned.members, planned.widths[0])
        hidden, targets = self.masking.hide(ids, real, key)
        return batch_of(targets, ids=hidden, real=real)


@dataclass(frozen=True)
class LabelledTexts:
    """Classification."""

    text: TokenColumn
    labels: Ints  # (N,)

    @cached_property
    def lengths(self) -> Ints:
        """(N, 1)."""
        return self.text.lengths[:, None]

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """Texts and their classes."""
        ids, real = self.text.read(planned.members, planned.widths[0])
        return batch_of(self.labels[planned.members], ids=ids, real=real)


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of sentences; one width for all, so the longest counts."""

    columns: tuple[TokenColumn, ...]  # first, second, perhaps negative
    scores: npt.NDArray[np.float32]  # (N,)

    @cached_property
    def lengths(self) -> Ints:
        """(N, number of sides), all the longest."""
        longest = np.max([column.lengths for column in self.columns], axis=0)
        return np.repeat(longest[:, None], len(self.columns), axis=1)

    def batch(self, planned: PlannedBatch, _: RandomKey) -> Batch:
        """All first sentences, then all second ones, then the negatives of those that have one."""
        read = [
            column.read(planned.members[column.lengths[planned.members] > 0], planned.widths[0])
            for column in self.columns
        ]
        ids, real = (np.concatenate(parts) for parts in zip(*read, strict=True))
        return batch_of(self.scores[planned.members], ids=ids, real=real)
