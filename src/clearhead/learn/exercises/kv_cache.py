"""The exercise `kv-cache`: keys and values of the past."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from clearhead.learn.exercise import ExerciseCase, Patch, Piece
from clearhead.model.cache import GrowingCache, State

Pair = tuple[Tensor, Tensor]


class ReferenceCache(GrowingCache):
    """The project's own cache, called as the exercise has it."""

    def positions(self, count: int) -> Tensor:
        """The positions of the next tokens."""
        return torch.arange(self.length, self.length + count)

    def append(self, keys: Tensor, values: Tensor) -> Pair:
        """All keys and values so far."""
        all_keys, all_values = super().append(keys, values)
        return all_keys.clone(), all_values.clone()

    def select(self, rows: Tensor) -> None:
        """Keep these rows."""
        self.store = [t[rows] for t in self.store]


REFERENCE = SimpleNamespace(KVCache=ReferenceCache)


def feed(piece: Piece, *parts: Pair, rows: Tensor | None = None) -> list[Any]:
    """Append parts one after the other, and collect everything that the cache returns; select rows before the last."""
    cache = piece.KVCache()
    found: list[Any] = []
    for number, (keys, values) in enumerate(parts):
        if rows is not None and number == len(parts) - 1:
            cache.select(rows)
        found += [cache.positions(keys.size(2)), *cache.append(keys, values)]
    return found


def select(piece: Piece, rows: Tensor, *parts: Pair) -> list[Any]:
    """Append parts, and keep only some rows before the last of them."""
    return feed(piece, *parts, rows=rows)


def cases() -> list[ExerciseCase]:
    """A prompt, single tokens after it, and hypotheses of a beam that are dropped and copied."""

    def part(rows: int, tokens: int) -> Pair:
        return torch.randn(rows, 2, tokens, 4), torch.randn(rows, 2, tokens, 4)

    prompt = part(3, 3)
    return [
        ExerciseCase("a prompt of three tokens", feed, (prompt,)),
        ExerciseCase("one token after it", feed, (prompt, part(3, 1))),
        ExerciseCase("three steps", feed, (prompt, part(3, 1), part(3, 1), part(3, 2))),
        ExerciseCase(
            "rows of the batch are selected", select, (torch.tensor([2, 0, 0]), prompt, part(3, 1), part(3, 1))
        ),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The caches of self-attention while the demo translates, and the positions of its tokens."""

    class Adapter:
        """The student's cache, with the attributes that the project's decoding state reads and writes."""

        def __init__(self) -> None:
            self.own = piece.KVCache()

        @property
        def length(self) -> int:
            return 0 if self.own.keys is None else int(self.own.keys.size(2))

        @property
        def store(self) -> list[Tensor]:
            return [] if self.own.keys is None else [self.own.keys, self.own.values]

        @store.setter
        def store(self, tensors: list[Tensor]) -> None:
            if tensors:
                self.own.keys, self.own.values = tensors

        def append(self, keys: Tensor, values: Tensor) -> Pair:
            joined: Pair = self.own.append(keys, values)
            return joined

        def read(self) -> Pair:
            keys, values = self.store
            return keys, values

    def positions(self: State, real: Tensor) -> Tensor:
        cache, _ = self.caches[0]
        assert isinstance(cache, Adapter)
        return torch.as_tensor(cache.own.positions(real.size(1))).expand(real.size(0), -1)

    return [Patch(State, "new_cache", lambda _: Adapter()), Patch(State, "_positions", positions)]
