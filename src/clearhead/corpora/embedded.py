"""Corpora that are written, not collected: drawn from a seed, the same on every machine, with no leak between splits.

A generator draws one example at a time. Which split it falls into is a hash of its key (what it says), so no two splits
ever share one, whatever the seed and the size. Word combinations that hash into the held-out part appear in the
`compositional` split only: its words are known from training (but for one in hundreds), together they are new.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from clearhead.config import Task, UserError
from clearhead.data.examples import Example

T = TypeVar("T")

SPLITS = ("train", "valid", "test", "compositional")
HELD_OUT_PERCENT = 4  # of the word combinations
REMEMBERED = 200_000  # examples of train at most that are kept in memory, some 300 bytes each
PATIENCE = 20_000  # draws in a row that bring nothing new, before a corpus is called exhausted


def hash_of(text: str) -> int:
    """A number that depends on the text alone, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Dice:
    """Random choices that are the same on every machine and Python version: all of them come from `random()`."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(hash_of(seed)).random

    def chance(self, probability: float) -> bool:
        """True this often."""
        return self.random() < probability

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """Several different items, in random order."""
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(n)]


@dataclass(frozen=True, slots=True)
class Draft:
    """A drawn example, what it says, what decides its split, and the word combinations that may be held out."""

    example: Example
    key: str  # two examples with the same key say the same: a split has only one of them
    combinations: tuple[str, ...] = ()  # such as "red car": pairs of content words that the example puts together
    group: str = ""  # examples of one group share a split; without one, an example goes by its key alone


def split_of(draft: Draft) -> str:
    """The one split a draft belongs to."""
    return split_by(draft.group or draft.key, draft.combinations)


@lru_cache(maxsize=1 << 16)
def is_held_out(combination: str) -> bool:
    """Whether a word combination appears in the `compositional` split only."""
    return hash_of(combination) % 100 < HELD_OUT_PERCENT


def split_by(group: str, combinations: Sequence[str] = ()) -> str:
    """The split that a hash of the group decides: 80 % train, 10 % valid, 10 % test; held-out combinations apart."""
    if any(map(is_held_out, combinations)):
        return "compositional"
    bucket = hash_of(group) % 10
    return "train" if bucket < 8 else "valid" if bucket == 8 else "test"


@dataclass(frozen=True)
class EmbeddedCorpus:
    """A generator with a name, a size and a seed."""

    name: str
    task: Task
    about: str
    draw: Callable[[Dice], Draft]
    size: int = 100_000  # examples of train; the other splits have a tenth, 1,000 at most
    seed: int = 0

    @property
    def splits(self) -> tuple[str, ...]:
        """All embedded corpora have the same ones."""
        return SPLITS

    def count(self, split: str) -> int:
        """How many examples a split has."""
        return self.size if split == "train" else min(1000, max(1, self.size // 10))

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split: always the same ones for the same seed."""
        return copy(remembered(self, split)) if self.size <= REMEMBERED else self.examples(split)

    def examples(self, split: str) -> Iterator[Example]:
        """Draw the examples of a split."""
        return itertools.islice(self._draw_all(split), self.count(split))

    def _draw_all(self, split: str) -> Iterator[Example]:
        """Draw without end, keeping what belongs to the split and was not there before."""
        dice = Dice(f"{self.name} {split} {self.seed}")
        seen: set[int] = set()
        idle = 0
        while idle < PATIENCE:
            draft = self.draw(dice)
            key = hash_of(draft.key)
            if key in seen or split_of(draft) != split:
                idle += 1
                continue
            seen.add(key)
            idle = 0
            yield draft.example
        raise UserError(
            f"corpus {self.name!r} has no more than {len(seen):,} different {split} examples; "
            f"lower data.size = {self.size:,}"
        )


@lru_cache(maxsize=4)  # a run reads train three times: for the tokenizer's two sides, and to encode it
def remembered(corpus: EmbeddedCorpus, split: str) -> Iterator[Example]:
    """The examples of a split, drawn as they are asked for and kept: each copy of this iterator has all of them."""
    return itertools.tee(corpus.examples(split), 1)[0]
