"""Random choices and hashes that are the same on every machine and with every Python version."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def hash_of(text: str) -> int:
    """A 64-bit hash that depends on the text alone (Python's own `hash` differs between processes)."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Dice:
    """A random generator whose choices are all computed from `random()`.

    Python guarantees the sequence of `random.random()` for a seed, but not that of `choice` or `sample`.
    """

    def __init__(self, seed: str) -> None:
        self.random = random.Random(hash_of(seed)).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
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
        """Return n different items, in random order."""
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(n)]
