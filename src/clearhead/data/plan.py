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

PADDING = 0.04  # part of the tokens that may be padding, if enough divisions can be made
SHAPES = 64  # buckets at most


def randoms(count: int, *key: int) -> npt.NDArray[np.uint64]:
    """64-bit random numbers that depend on the key alone, on every machine and with every version of numpy."""
    return np.random.PCG64(np.random.SeedSequence([part % 2**64 for part in key])).random_raw(count)


def shuffled(count: int, *key: int) -> Ints:
    """The numbers from 0 to count - 1 in an order that depends on the key alone."""
    return np.argsort(randoms(count, *key), kind="stable")


@dataclass(frozen=True)
class Bucket:
    """Examples of similar lengths."""

    widths: tuple[int, ...]  # what each side is padded to
    members: Ints


class PlannedBatch(NamedTuple):
    """One batch of a plan: which examples (perhaps none), padded to which widths."""

    members: Ints
    widths: tuple[int, ...]


class Division(NamedTuple):
    """A way to divide a bucket in two, ordered by what it saves."""

    saved: int  # tokens of padding, negative: a heap gives the smallest first
    number: int  # of the bucket: makes equal savings comparable
    left: Ints
    right: Ints


def length_buckets(lengths: Ints, budget: int, world: int = 1) -> list[Bucket]:
    """Examples with lengths (N, sides) sorted into buckets, each with at least one full batch for every rank."""
    keys = np.ravel_multi_index(tuple(lengths.T), tuple(lengths.max(axis=0) + 1))
    _, first, kind, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    kinds = lengths[first]  # distinct lengths
    groups = divide(kinds, counts, budget * world)
    group_of_kind = np.empty(len(kinds), np.int64)
    for number, group in enumerate(groups):
        group_of_kind[group] = number
    cell_of = group_of_kind[kind]
    order = np.argsort(cell_of, kind="stable")
    borders = np.searchsorted(cell_of[order], np.arange(len(groups) + 1))
    widths = [tuple(int(width) for width in kinds[group].max(axis=0)) for group in groups]
    return [Bucket(shape, order[a:b]) for shape, (a, b) in zip(widths, itertools.pairwise(borders), strict=True)]


def divide(kinds: Ints, counts: Ints, least: int) -> list[Ints]:
    """Distinct lengths in groups that need little padding, each of at least so many padded tokens."""
    groups: dict[int, Ints] = {0: np.arange(len(kinds))}
    divisions = [division] if (division := best_division(kinds, counts, groups[0], 0, least)) else []
    real = int((kinds.sum(axis=1) * counts).sum())
    padded = int(kinds.max(axis=0).sum() * counts.sum())
    while divisions and len(groups) < SHAPES and real < (1 - PADDING) * padded:
        saved, number, left, right = heapq.heappop(divisions)
        padded += saved
        groups[number], groups[len(groups)] = left, right
        for each in (number, len(groups) - 1):
            if division := best_division(kinds, counts, groups[each], each, least):
                heapq.heappush(divisions, division)
    return [group for _, group in sorted(groups.items())]


def best_division(kinds: Ints, counts: Ints, group: Ints, number: int, least: int) -> Division | None:
    """The division across one side that saves most padding and leaves both parts large enough, if there is one."""
    best: Division | None = None
    whole = int(kinds[group].max(axis=0).sum() * counts[group].sum())
    for side in range(kinds.shape[1]):
        order = group[np.argsort(kinds[group, side], kind="stable")]
        here, many = kinds[order], counts[order]
        below = np.maximum.accumulate(here)[:-1].sum(axis=1) * np.cumsum(many)[:-1]
        above = np.maximum.accumulate(here[::-1])[::-1][1:].sum(axis=1) * np.cumsum(many[::-1])[::-1][1:]
        possible = (here[1:, side] > here[:-1, side]) & (below >= least) & (above >= least)
        saved = np.where(possible, whole - below - above, 0)
        place = int(saved.argmax()) if len(saved) else 0
        if len(saved) and saved[place] > 0 and (best is None or -saved[place] < best.saved):
            best = Division(-int(saved[place]), number, order[: place + 1], order[place + 1 :])
    return best


def batch_sizes(bucket: Bucket, budget: int, world: int) -> Ints:
    """The borders that divide a bucket's members evenly into batches within the budget, as many for each rank."""
    rows = budget // sum(bucket.widths)
    require(
        rows > 0,
        f"data.batch_tokens = {budget} cannot hold the longest example ({sum(bucket.widths)} tokens, padding and "
        f"both sides of a pair included); raise it or lower data.max_length",
    )
    batches = -(-len(bucket.members) // (rows * world)) * world
    return np.arange(batches + 1) * len(bucket.members) // batches


def plan(
    buckets: list[Bucket], budget: int, key: tuple[int, int] | None, rank: int = 0, world: int = 1
) -> list[PlannedBatch]:
    """The batches of one rank, in order; key is (seed, epoch), or None for an order that is never shuffled."""
    steps: list[PlannedBatch] = []
    for number, bucket in enumerate(buckets):
        members = bucket.members if key is None else bucket.members[shuffled(len(bucket.members), *key, number)]
        borders = batch_sizes(bucket, budget, world)
        mine = zip(borders[rank:-1:world], borders[rank + 1 :: world], strict=True)
        steps += [PlannedBatch(members[a:b], bucket.widths) for a, b in mine]
    return steps if key is None else [steps[step] for step in shuffled(len(steps), *key, len(buckets))]
