"""Which examples share a batch: a pure function of lengths, token budget, seed, epoch, rank and world size.

Examples are sorted into buckets of similar lengths, and every batch of a bucket has the bucket's shape. The buckets are
found by division: all examples start in one bucket; then, repeatedly, the division that saves most padding is made,
until only PADDING of the tokens are padding. This gives a few dozen shapes, the same in every epoch, and at least 95 %
real tokens on corpora of sentences.

Each batch of an epoch is drawn from one bucket at random. The batches of all ranks in one step come from the same
bucket, so no rank waits long for another. The examples of a bucket are divided evenly among its batches: none is lost,
none is repeated, and all ranks have the same number of batches. (Where a bucket has fewer examples left than there are
ranks, the batch of some ranks is empty.)
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clearhead.config import require

Ints = npt.NDArray[np.int64]

PADDING = 0.04  # fraction of the tokens that may be padding, if enough divisions are possible
SHAPES = 64  # most buckets


def randoms(count: int, *key: int) -> npt.NDArray[np.uint64]:
    """64-bit random numbers that depend only on the key, on every machine and with every version of numpy."""
    return np.random.PCG64(np.random.SeedSequence([part % 2**64 for part in key])).random_raw(count)


def shuffled(count: int, *key: int) -> Ints:
    """A permutation of the numbers below `count` that depends only on the key."""
    return np.argsort(randoms(count, *key), kind="stable")


@dataclass(frozen=True)
class Bucket:
    """Examples of similar lengths."""

    widths: tuple[int, ...]  # the length that each column is padded to
    members: Ints  # the numbers of the examples


class PlannedBatch(NamedTuple):
    """One batch of a plan: the numbers of its examples, perhaps none, and the lengths they are padded to."""

    members: Ints
    widths: tuple[int, ...]


class Division(NamedTuple):
    """A way to divide a group of lengths in two; divisions are compared by the padding that they save."""

    saved: int  # tokens of padding, negative: a heap returns the smallest first
    number: int  # of the group: breaks ties
    left: Ints
    right: Ints


def length_buckets(lengths: Ints, budget: int, world: int = 1) -> list[Bucket]:
    """Sort examples with lengths (N, columns) into buckets, each with at least one full batch for every rank."""
    keys = np.ravel_multi_index(tuple(lengths.T), tuple(lengths.max(axis=0) + 1))
    _, first, kind, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    kinds = lengths[first]  # the distinct lengths
    groups = divide(kinds, counts, budget * world)
    group_of_kind = np.empty(len(kinds), np.int64)
    for number, group in enumerate(groups):
        group_of_kind[group] = number
    bucket_of = group_of_kind[kind]
    order = np.argsort(bucket_of, kind="stable")
    borders = np.searchsorted(bucket_of[order], np.arange(len(groups) + 1))
    widths = [tuple(int(width) for width in kinds[group].max(axis=0)) for group in groups]
    return [Bucket(shape, order[a:b]) for shape, (a, b) in zip(widths, itertools.pairwise(borders), strict=True)]


def divide(kinds: Ints, counts: Ints, least: int) -> list[Ints]:
    """Divide distinct lengths into groups that need little padding, each with at least `least` tokens when padded."""
    groups: dict[int, Ints] = {0: np.arange(len(kinds))}
    divisions = [division] if (division := best_division(kinds, counts, groups[0], 0, least)) else []
    real = int((kinds.sum(axis=1) * counts).sum())
    padded = int(kinds.max(axis=0).sum() * counts.sum())
    while divisions and len(groups) < SHAPES and real < (1 - PADDING) * padded:
        saved, number, left, right = heapq.heappop(divisions)
        padded += saved
        added = len(groups)
        groups[number] = left
        groups[added] = right
        for each in (number, added):
            if division := best_division(kinds, counts, groups[each], each, least):
                heapq.heappush(divisions, division)
    return [group for _, group in sorted(groups.items())]


def best_division(kinds: Ints, counts: Ints, group: Ints, number: int, least: int) -> Division | None:
    """The division by one column's length that saves most padding and leaves both parts large enough; or None."""
    best: Division | None = None
    whole = int(kinds[group].max(axis=0).sum() * counts[group].sum())
    for column in range(kinds.shape[1]):
        order = group[np.argsort(kinds[group, column], kind="stable")]
        here = kinds[order]
        many = counts[order]
        # The padded tokens of both parts, if the group is divided after the first, second, ... of these lengths.
        below = np.maximum.accumulate(here)[:-1].sum(axis=1) * np.cumsum(many)[:-1]
        above = np.maximum.accumulate(here[::-1])[::-1][1:].sum(axis=1) * np.cumsum(many[::-1])[::-1][1:]
        possible = (here[1:, column] > here[:-1, column]) & (below >= least) & (above >= least)
        saved = np.where(possible, whole - below - above, 0)
        place = int(saved.argmax()) if len(saved) else 0
        if len(saved) and saved[place] > 0 and (best is None or -saved[place] < best.saved):
            best = Division(-int(saved[place]), number, order[: place + 1], order[place + 1 :])
    return best


def batch_borders(bucket: Bucket, budget: int, world: int) -> Ints:
    """The indices that divide a bucket evenly into batches within the token budget, the same number for each rank."""
    rows = budget // sum(bucket.widths)
    require(
        rows > 0,
        f"data.batch_tokens = {budget} cannot hold the longest example ({sum(bucket.widths)} tokens, counting padding "
        f"and both sides of a pair); raise it or lower data.max_length",
    )
    batches = -(-len(bucket.members) // (rows * world)) * world
    return np.arange(batches + 1) * len(bucket.members) // batches


def plan(
    buckets: list[Bucket], budget: int, key: tuple[int, int] | None, rank: int = 0, world: int = 1
) -> list[PlannedBatch]:
    """The batches of one rank, in order. The key is (seed, epoch); None does not shuffle."""
    steps: list[PlannedBatch] = []
    for number, bucket in enumerate(buckets):
        members = bucket.members if key is None else bucket.members[shuffled(len(bucket.members), *key, number)]
        borders = batch_borders(bucket, budget, world)
        mine = zip(borders[rank:-1:world], borders[rank + 1 :: world], strict=True)
        steps += [PlannedBatch(members[a:b], bucket.widths) for a, b in mine]
    return steps if key is None else [steps[step] for step in shuffled(len(steps), *key, len(buckets))]
