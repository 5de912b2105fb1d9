"""The exercise `kv-cache`: keys and values of the past."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece
from clearhead.model.cache import GrowingCache, State

Pair = tuple[Tensor, Tensor]


class Reference(GrowingCache):
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
    """The same, where only some rows are kept before the last part."""
    return feed(piece, *parts, rows=rows)


def cases() -> list[Case]:
    """A prompt, single tokens after it, and hypotheses of a beam that are dropped and copied."""

    def part(rows: int, tokens: int) -> Pair:
        return torch.randn(rows, 2, tokens, 4), torch.randn(rows, 2, tokens, 4)

    prompt = part(3, 3)
    return [
        Case("a prompt of three tokens", feed, (prompt,)),
        Case("one token after it", feed, (prompt, part(3, 1))),
        Case("three steps", feed, (prompt, part(3, 1), part(3, 1), part(3, 2))),
        Case("rows of the batch are selected", select, (torch.tensor([2, 0, 0]), prompt, part(3, 1), part(3, 1))),
    ]


JOINED = """            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
"""
MISTAKES = (
    Mistake(
        "The cache position is wrong: it starts at 0 again",
        "The new token comes after all that are in the cache: its position is their number.",
        "torch.arange(length, length + count)",
        "torch.arange(count)",
    ),
    Mistake(
        "The cache position is one too small",
        "With 3 tokens in the cache (positions 0, 1, 2), the next one has position 3.",
        "torch.arange(length, length + count)",
        "torch.arange(max(length - 1, 0), max(length - 1, 0) + count)",
    ),
    Mistake(
        "The cache position is one too large",
        "Positions are counted from 0: with 3 tokens in the cache, the next one has position 3.",
        "torch.arange(length, length + count)",
        "torch.arange(length + 1, length + 1 + count)",
    ),
    Mistake(
        "New keys and values replace the old ones",
        "The old ones are still needed: join old and new with torch.cat.",
        JOINED,
        "            pass\n",
    ),
    Mistake(
        "New keys and values come before the old ones",
        "Oldest first: torch.cat([old, new], dim=2).",
        JOINED,
        JOINED.replace("[self.keys, keys]", "[keys, self.keys]").replace(
            "[self.values, values]", "[values, self.values]"
        ),
    ),
    Mistake(
        "They are joined along the wrong axis",
        "The shape is (B, H, S, K): tokens are axis 2.",
        JOINED,
        JOINED.replace("dim=2", "dim=1"),
    ),
    Mistake(
        "The values are not kept",
        "Both keys and values of earlier tokens are needed.",
        "            values = torch.cat([self.values, values], dim=2)\n",
        "",
    ),
    Mistake(
        "Only the first call is stored",
        "Store the joined keys and values: the next step needs those of this one.",
        "        self.keys = keys\n        self.values = values\n",
        "        self.keys = keys if self.keys is None else self.keys\n"
        "        self.values = values if self.values is None else self.values\n",
    ),
    Mistake(
        "append returns nothing",
        "It returns all keys and values, old and new: attention is computed with them.",
        "        return keys, values\n",
        "",
    ),
    Mistake(
        "All new tokens get the same position",
        "A prompt of three tokens has positions 0, 1, 2: torch.arange counts them.",
        "torch.arange(length, length + count)",
        "torch.full((count,), length)",
    ),
    Mistake(
        "select takes heads instead of rows of the batch",
        "The shape is (B, H, S, K): the batch is the first axis, self.keys[rows].",
        "            self.keys = self.keys[rows]\n            self.values = self.values[rows]\n",
        "            self.keys = self.keys[:, rows]\n            self.values = self.values[:, rows]\n",
    ),
    Mistake(
        "select keeps the values of all rows",
        "Keys and values belong together: select the same rows of both.",
        "            self.values = self.values[rows]\n",
        "",
    ),
    Mistake(
        "select does nothing",
        "Hypothesis i continues what was row rows[i]: self.keys = self.keys[rows], and the same for the values.",
        "            self.keys = self.keys[rows]\n            self.values = self.values[rows]\n",
        "            pass\n",
    ),
)


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


EXERCISE = Exercise(
    name="kv-cache",
    reference=SimpleNamespace(KVCache=Reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "positions looks at how many tokens self.keys has: self.keys.size(2), or 0 while it is None.",
        "append joins old and new along the axis of the tokens: torch.cat([self.keys, keys], dim=2). Store the result.",
        "select: self.keys[rows] takes these rows in this order, some of them twice.",
    ),
    swap=swap,
    decodes=True,
    gradient=False,
)
