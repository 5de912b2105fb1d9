"""Compute items ahead of time in a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_background(items: Iterator[T], ahead: int) -> Iterator[T]:
    """Yield the same items, computed by a thread up to `ahead` of them in advance; its exceptions are raised here."""

    def take_one() -> list[T]:
        return list(islice(items, 1))  # empty at the end

    pool = ThreadPoolExecutor(1, "prefetch")
    try:
        pending = deque(pool.submit(take_one) for _ in range(ahead + 1))
        while found := pending.popleft().result():
            pending.append(pool.submit(take_one))
            yield from found
    finally:
        pool.shutdown(cancel_futures=True)  # waits for the thread
