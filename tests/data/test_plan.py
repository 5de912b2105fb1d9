"""Plans of batches: every example once, equal counts on all ranks, few shapes, a pure function of the seed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from clearhead.config import UserError
from clearhead.data.plan import PlannedBatch, length_buckets, plan, randoms, shuffled
from properties import given, st

LENGTHS: st.SearchStrategy[Any] = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.tuples(*[st.integers(1, 30)] * sides), min_size=1, max_size=150).map(np.array)
)


@given(LENGTHS, st.integers(90, 400), st.integers(0, 2**40), st.integers(0, 5), st.integers(1, 5))
def test_every_example_once_and_equal_counts(lengths: Any, budget: int, seed: int, epoch: int, world: int) -> None:
    buckets = length_buckets(lengths, budget, world)
    plans = [plan(buckets, budget, (seed, epoch), rank, world) for rank in range(world)]
    assert len({len(steps) for steps in plans}) == 1
    members = np.concatenate([rows.members for steps in plans for rows in steps])
    assert sorted(members.tolist()) == list(range(len(lengths)))
    for rows in itertools.chain(*plans):
        assert len(rows.members) * sum(rows.widths) <= budget
        assert (lengths[rows.members] <= rows.widths).all()
    for together in zip(*plans, strict=True):  # ranks work on equal shapes, so none waits long
        assert len({rows.widths for rows in together}) == 1
        sizes = [len(rows.members) for rows in together]
        assert max(sizes) - min(sizes) <= 1


def same(left: list[PlannedBatch], right: list[PlannedBatch]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(a.members, b.members) and a.widths == b.widths for a, b in zip(left, right, strict=True)
    )


def random_lengths(count: int, sides: int = 2) -> Any:
    return np.random.default_rng(0).integers(3, 40, (count, 1)) + np.random.default_rng(1).integers(
        0, 4, (count, sides)
    )


def test_a_plan_depends_on_its_key_alone() -> None:
    lengths = random_lengths(3000)
    buckets = length_buckets(lengths, 500)
    first = plan(buckets, 500, (1, 2))
    assert same(first, plan(length_buckets(lengths.copy(), 500), 500, (1, 2)))
    assert not same(first, plan(buckets, 500, (1, 3)))
    assert not same(first, plan(buckets, 500, (2, 2)))
    assert same(plan(buckets, 500, None), plan(buckets, 500, None))


def test_epochs_mix_examples_anew_and_lengths_are_not_sorted() -> None:
    lengths = random_lengths(3000)
    buckets = length_buckets(lengths, 500)
    together = [{frozenset(rows.members.tolist()) for rows in plan(buckets, 500, (0, epoch))} for epoch in range(2)]
    assert len(together[0] & together[1]) < 0.05 * len(together[0])
    widths = [sum(rows.widths) for rows in plan(buckets, 500, (0, 0))]
    assert abs(np.corrcoef(widths[:-1], widths[1:])[0, 1]) < 0.3


def test_few_shapes_the_same_in_every_epoch() -> None:
    lengths = random_lengths(30_000)
    buckets = length_buckets(lengths, 2000)
    shapes = [{(len(rows.members), rows.widths) for rows in plan(buckets, 2000, (0, epoch))} for epoch in range(2)]
    assert shapes[0] == shapes[1]
    assert len({widths for _, widths in shapes[0]}) == len(buckets) <= 64
    assert len(shapes[0]) <= 2 * len(buckets)


def test_random_numbers_never_change() -> None:
    # Numbers of today: a change of the generator would end the reproducibility of every run that there is.
    assert shuffled(8, 1, 2).tolist() == [5, 6, 3, 2, 1, 0, 4, 7]
    assert randoms(2, 3).tolist() == [1579948266424812280, 4368382809143759861]


def test_an_example_that_fits_in_no_batch() -> None:
    with pytest.raises(UserError, match=r"data\.batch_tokens = 20 cannot hold the longest example \(30 tokens"):
        plan(length_buckets(np.array([[15, 15]]), 20), 20, None)
