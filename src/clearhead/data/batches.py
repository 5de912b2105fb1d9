"""Token ids to padded batches. Every task has the same kind of batch: the model's inputs, and its targets.

Shapes: B rows, T tokens (padded on the right), S source tokens. A target of -100 is ignored by the loss.

    batches          inputs                        targets
    pairs            source, source_real, target   (B, T) the next token of the target, [end] last
    next tokens      ids                           (B, T) the next token, [end] after a document
    masked tokens    ids, real                     (B, T) the token that is masked, -100 elsewhere
    labelled texts   ids, real                     (B,)   the number of the class
    dialogues        ids (packed: documents)       (B, T) the next token if the assistant says it, -100 elsewhere
    sentence pairs   ids, real: all first          (B,)   the similarity of first and second, 0 to 1
                     sentences, all second ones,
                     then the negatives
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
SPARSE = 0.5  # if a smaller part of the positions has a target, logits are computed for those positions only
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Batch:
    """What the model is called with, `model(**batch.inputs)`, and what it should predict."""

    inputs: dict[str, Tensor]
    targets: Tensor
    tokens: int = -1  # number of targets that are not ignored; -1: counted here
    real_tokens: int = -1  # number of input tokens that are not padding; -1: counted here

    def __post_init__(self) -> None:
        if self.tokens < 0:
            object.__setattr__(self, "tokens", int((self.targets != IGNORE).sum()))
        if self.real_tokens < 0:
            real = self.inputs.get("real", self.inputs.get("source_real"))
            first = next(iter(self.inputs.values()))
            object.__setattr__(self, "real_tokens", first.numel() if real is None else int(real.sum()))

    def shapes(self) -> tuple[object, ...]:
        """The shapes of all tensors."""
        return (*((name, tensor.shape) for name, tensor in self.inputs.items()), self.targets.shape)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with a function applied to each of its tensors."""
        inputs = {name: change(tensor) for name, tensor in self.inputs.items()}
        return replace(self, inputs=inputs, targets=change(self.targets))

    def clone(self) -> Batch:
        """A deep copy."""
        return self.mapped(Tensor.clone)

    def to(self, device: torch.device | str) -> Batch:
        """The batch on a device; copies from pinned memory are asynchronous."""
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> Batch:
        """The batch in pinned memory, from which a GPU copies asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def blank(self) -> Batch:
        """The batch with all targets ignored, for a rank that runs out of examples before the others."""
        return replace(self, targets=torch.full_like(self.targets, IGNORE), tokens=0)


class RandomKey(NamedTuple):
    """The key of the random numbers of a batch."""

    seed: int
    epoch: int
    number: int  # of the batch, over all ranks


class Dataset(Protocol):
    """The examples of a split, as the loader needs them."""

    def buckets(self, epoch: int) -> list[Bucket]:
        """The buckets that the batches of an epoch are drawn from."""

    def batch(self, planned: PlannedBatch, key: RandomKey) -> Batch:
        """Collate the examples of a planned batch."""


class TokenColumn:
    """A column of token sequences, truncated to `limit` tokens."""

    def __init__(self, array: RaggedArray, tokenizer: Tokenizer, limit: int) -> None:
        self.array = array
        self.limit = limit
        self.pad = tokenizer.pad
        self.start = tokenizer.start
        self.end = tokenizer.end
        self.lengths = np.minimum(array.lengths, limit)

    def read(self, rows: Ints, width: int) -> tuple[Ints, Bools]:
        """Padded sequences (B, width), and a mask of their real tokens; a truncated sequence still ends with [end]."""
        starts = self.array.offsets[rows]
        real = np.arange(width) < self.lengths[rows, None]
        ids = take(self.array.values, starts, width)
        ids[~real] = self.pad
        truncated = np.flatnonzero(self.array.offsets[rows + 1] - starts > self.limit)
        if len(truncated):  # then width is the limit
            ids[truncated, -1] = self.end
        return ids, real

    def read_shifted(self, rows: Ints, width: int) -> tuple[Ints, Ints]:
        """Inputs (B, width) that begin with [start], and targets: the token after each, [end] after the last."""
        return self.shifted_slices(self.array.offsets[rows], self.lengths[rows], width)

    def shifted_slices(self, starts: Array, lengths: Array, width: int) -> tuple[Ints, Ints]:
        """Slices (B, width) of a column whose sequences begin with [start], and the token that follows each token.

        In the targets, the [start] of the next sequence becomes the [end] of this one.
        """
        block = take(self.array.values, starts, width + 1)
        ids = block[:, :-1].copy()
        targets = block[:, 1:].copy()
        targets[targets == self.start] = self.end
        if int(np.min(lengths)) < width:
            padding = np.arange(width) >= lengths[:, None]
            ids[padding] = self.pad
            targets[padding] = IGNORE
        return ids, targets


def take(values: Array, starts: Array, width: int) -> Ints:
    """Slices (B, width) that begin at `starts`; past the end of the values, the last value is repeated."""
    count = len(values) - width + 1  # number of slices that do not reach beyond the end
    if int(np.max(starts, initial=0)) < count:
        slices = np.ndarray((count, width), values.dtype, values, 0, values.strides * 2)  # overlapping views
        return slices[starts].astype(np.int64)  # copying whole slices is three times faster than single numbers
    indices = np.asarray(starts)[:, None] + np.arange(width)
    return values[np.minimum(indices, len(values) - 1)].astype(np.int64)


def batch_of(targets: npt.NDArray[Any], **inputs: npt.NDArray[Any]) -> Batch:
    """A batch of arrays; its tensors share their memory."""
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    return Batch(tensors, torch.from_numpy(targets), int(np.count_nonzero(targets != IGNORE)))


class Masking:
    """BERT's masking: of the chosen tokens, 80 % become [mask], 10 % a random token, 10 % stay as they are."""

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        self.rate = rate
        self.mask = tokenizer.mask
        special = [tokenizer.special(name) for name in SPECIALS if tokenizer.has(name)]
        self.ordinary = np.setdiff1d(np.arange(tokenizer.vocab), special)
        self.is_ordinary = np.isin(np.arange(tokenizer.vocab), self.ordinary)

    def apply(self, ids: Ints, real: Bools, key: RandomKey) -> tuple[Ints, Ints]:
        """Inputs with some tokens masked, and those tokens as targets; special tokens are never masked."""
        draws = randoms(2 * ids.size, *key).reshape(2, *ids.shape)
        chosen = (draws[0] >> np.uint64(32)) < np.uint64(self.rate * 2**32)
        chosen &= self.is_ordinary[ids] & real
        kind = (draws[0] & np.uint64(2**32 - 1)).astype(np.float64) / 2**32
        others = self.ordinary[draws[1] % np.uint64(len(self.ordinary))]
        masked = np.where(kind < 0.8, self.mask, np.where(kind < 0.9, others, ids))
        return np.where(chosen, masked, ids), np.where(chosen, ids, IGNORE)


# --- examples that are padded: how the rows of columns become a batch -------------------------------------------------


class PaddedExamples(NamedTuple):
    """Examples, one per row, that are padded to the widths of their bucket."""

    lengths: Ints  # (N, columns)
    batch: Callable[[PlannedBatch, RandomKey], Batch]  # collates the examples of a planned batch


def pad_pairs(source: TokenColumn, target: TokenColumn) -> PaddedExamples:
    """Sources and targets, each padded to its own width."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        ids, real = source.read(planned.members, planned.widths[0])
        inputs, targets = target.read_shifted(planned.members, planned.widths[1])
        return batch_of(targets, source=ids, source_real=real, target=inputs)

    return PaddedExamples(np.stack([source.lengths, target.lengths], axis=1), batch)


def pad_documents(text: TokenColumn) -> PaddedExamples:
    """Documents, and the token after each of their tokens."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        ids, targets = text.read_shifted(planned.members, planned.widths[0])
        return batch_of(targets, ids=ids)

    return PaddedExamples(text.lengths[:, None], batch)


def pad_masked_documents(text: TokenColumn, masking: Masking) -> PaddedExamples:
    """Documents with masked tokens, chosen anew in every epoch."""

    def batch(planned: PlannedBatch, key: RandomKey) -> Batch:
        ids, real = text.read(planned.members, planned.widths[0])
        masked, targets = masking.apply(ids, real, key)
        return batch_of(targets, ids=masked, real=real)

    return PaddedExamples(text.lengths[:, None], batch)


def pad_labelled_texts(text: TokenColumn, labels: Ints) -> PaddedExamples:
    """Texts, and the numbers (N,) of their classes."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        ids, real = text.read(planned.members, planned.widths[0])
        return batch_of(labels[planned.members], ids=ids, real=real)

    return PaddedExamples(text.lengths[:, None], batch)


def pad_sentence_pairs(columns: Sequence[TokenColumn], scores: npt.NDArray[np.float32]) -> PaddedExamples:
    """All first sentences, then all second ones, then the negatives of those that have one; all of one width."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        members = planned.members
        read = [column.read(members[column.lengths[members] > 0], planned.widths[0]) for column in columns]
        ids, real = (np.concatenate(parts) for parts in zip(*read, strict=True))
        return batch_of(scores[members], ids=ids, real=real)

    longest = np.max([column.lengths for column in columns], axis=0)
    return PaddedExamples(np.repeat(longest[:, None], len(columns), axis=1), batch)
