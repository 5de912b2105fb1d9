"""Compute items ahead of time in a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import TypeVar, cast

T = TypeVar("T")


def in_background(items: Iterator[T], ahead: int) -> Iterator[T]:
    """Yield the same items, computed by a thread up to `ahead` of them in advance; its exceptions are raised here."""
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(ahead)
    stopped = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put((item, error), timeout=0.1)
                return

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if stopped.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield cast(T, item)
    finally:
        stopped.set()
        thread.join()  # otherwise it could still be running when the interpreter shuts down
