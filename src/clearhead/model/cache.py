"""What a model remembers between two decoding steps.

Shapes: B rows (sentences, or hypotheses of a beam), T new tokens, S tokens so far, G key/value heads, K head size.
Two storages stand behind one interface: one that grows, and one of fixed shape for CUDA graphs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.model.block import Sight
from clearhead.model.stack import check_real


class GrowingCache:
    """Keys and values of one attention. Room doubles when it runs out: storing costs the same however much there is."""

    def __init__(self) -> None:
        self.length = 0
        self.store: list[Tensor] = []  # keys and values, (B, G, room, K) each

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in (B, G, T, K) new keys and values; give all (B, G, S, K), oldest first."""
        end = self.length + keys.size(2)
        if not self.store:
            self.store = [keys[:, :, :0], values[:, :, :0]]
        self.store = [self._write(old, new, end) for old, new in zip(self.store, (keys, values), strict=True)]
        self.length = end
        return self.read()

    def _write(self, old: Tensor, new: Tensor, end: int) -> Tensor:
        """Always a copy: a hook may hold what is new."""
        if end > old.size(2):
            larger = old.new_empty(*old.shape[:2], max(end, 2 * old.size(2)), old.size(3))
            larger[:, :, : self.length] = old[:, :, : self.length]
            old = larger
        old[:, :, self.length : end] = new
        return old

    def read(self) -> tuple[Tensor, Tensor]:
        """All keys and values so far."""
        keys, values = self.store
        return keys[:, :, : self.length], values[:, :, : self.length]


class FixedCache:
    """The same with all room from the start: shapes and addresses never change, so that a step can be a CUDA graph.

    Reading gives the whole room; the mask hides what is not written yet. `written` is the state's count of tokens,
    on the device, the newest included.
    """

    def __init__(self, capacity: int, written: Tensor) -> None:
        self.length = 0
        self.capacity, self.written = capacity, written
        self.store: list[Tensor] = []

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write (B, G, T, K) new keys and values into their slots; give the whole room (B, G, capacity, K)."""
        if not self.store:
            shape = (*keys.shape[:2], self.capacity, keys.size(3))
            self.store = [keys.new_zeros(shape), values.new_zeros(shape)]
        slots = newest_slots(self.written, keys.size(2))
        for room, new in zip(self.store, (keys, values), strict=True):
            room.index_copy_(2, slots, new)
        self.length += keys.size(2)
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """The whole room."""
        return self.store[0], self.store[1]


class State:
    """All caches of a decoder, and which of the tokens so far are real. Rows are sentences, or hypotheses of a beam."""

    def __init__(self, layers: int, rows: int, device: torch.device) -> None:
        self.length = 0  # tokens so far, padding included
        self.seen = torch.zeros(rows, 0, dtype=torch.bool, device=device)  # (B, S) True at real tokens
        self.count = torch.zeros(rows, 1, dtype=torch.long, device=device)  # real tokens so far
        self.padded = False  # whether any token so far is padding: without, the fast kernels need no mask
        self.memory: Tensor | None = None  # (B, S, D) the encoder's output, in an encoder-decoder
        self.memory_mask: Tensor | None = None
        self.caches: list[tuple[GrowingCache | FixedCache, GrowingCache]] = [  # self-attention, cross-attention
            (self._cache(), GrowingCache()) for _ in range(layers)
        ]

    def _cache(self) -> GrowingCache | FixedCache:
        return GrowingCache()

    def look_at(self, memory: Tensor, memory_mask: Tensor | None) -> None:
        """Remember what the encoder made of the source: copies, since selecting rows writes into them."""
        self.memory, self.memory_mask = memory.clone(), None if memory_mask is None else memory_mask.clone()

    def advance(self, ids: Tensor, real: Tensor | None) -> tuple[Tensor, Sight]:
        """Take in (B, T) new tokens: their positions (real tokens counted from 0), and what each may see."""
        past, new = self.length, ids.size(1)
        self.padded = self.padded or (real is not None and not bool(real.all()))
        real = torch.ones_like(ids, dtype=torch.bool) if real is None else check_real(real)
        self.seen = torch.cat([self.seen, real], dim=1)
        self.length += new
        if self.padded or (past and new > 1):
            slots = torch.arange(past, self.length, device=ids.device)
            sight = Sight(look_back(self.seen, slots), memory=self.memory, memory_mask=self.memory_mask)
        else:  # the first tokens see each other causally; a single one sees all that came before
            sight = Sight(causal=past == 0 and new > 1, memory=self.memory, memory_mask=self.memory_mask)
        return self._positions(real), sight

    def _positions(self, real: Tensor) -> Tensor:
        """(B, T): how many real tokens stand before each; padding gets any valid one."""
        positions = (self.count + real.cumsum(1) - 1).clamp(min=0)
        self.count += real.sum(1, keepdim=True)
        return positions

    def select(self, rows: Tensor, same_source: bool = False) -> None:
        """Keep these rows, in this order; a row may be named more than once.

        With `same_source` rows only change places, or multiply, among those of one sentence: what belongs to the
        source stays, and all rows of a sentence look at it. Without, sentences are kept with all their rows or none.
        """
        if self.memory is not None and not same_source:
            share = len(self.count) // len(self.memory)  # rows of a sentence
            keep = Selection(rows[::share] // share, len(self.memory))
            self.memory = keep(self.memory)
            self.memory_mask = None if self.memory_mask is None else keep(self.memory_mask)
            for _, cross in self.caches:
                cross.store = [keep(t) for t in cross.store]
        keep = Selection(rows, len(self.count))
        for own, _ in self.caches:
            own.store = [keep(t) for t in own.store]
        self.seen, self.count = keep(self.seen), keep(self.count)


class Selection:
    """Which rows stay, in which order: where as many stay, only those that move are copied, and t keeps its address."""

    def __init__(self, rows: Tensor, count: int) -> None:
        self.rows, self.moved = rows, None
        if len(rows) == count:
            self.moved = (rows != torch.arange(count, device=rows.device)).nonzero()[:, 0]
            self.rows = rows[self.moved]

    def __call__(self, t: Tensor) -> Tensor:
        """These rows of t."""
        kept = t.index_select(0, self.rows)
        return kept if self.moved is None else t.index_copy_(0, self.moved, kept)


class FixedState(State):
    """A state of fixed shape: room for `capacity` tokens from the start, written in place.

    A CUDA graph that is replayed moves only what lies on the device: who replays counts the tokens against capacity.
    """

    def __init__(self, layers: int, rows: int, device: torch.device, capacity: int) -> None:
        self.capacity = capacity
        self.written = torch.zeros((), dtype=torch.long, device=device)  # tokens so far, where a CUDA graph sees it
        super().__init__(layers, rows, device)
        self.seen = torch.zeros(rows, capacity, dtype=torch.bool, device=device)

    def _cache(self) -> FixedCache:
        return FixedCache(self.capacity, self.written)

    def advance(self, ids: Tensor, real: Tensor | None) -> tuple[Tensor, Sight]:
        """Take in (B, T) new tokens: their positions (real tokens counted from 0), and what each may see."""
        length = self.length + ids.size(1)
        require(
            length <= self.capacity,
            f"capacity = {self.capacity}: no room for {length} tokens; start with a larger capacity",
        )
        self.length = length
        real = torch.ones_like(ids, dtype=torch.bool) if real is None else check_real(real)
        self.written += ids.size(1)
        slots = newest_slots(self.written, ids.size(1))
        self.seen.index_copy_(1, slots, real)
        sight = Sight(look_back(self.seen, slots), memory=self.memory, memory_mask=self.memory_mask)
        return self._positions(real), sight


def newest_slots(written: Tensor, new: int) -> Tensor:
    """(T,): where the newest tokens stand."""
    return written - new + torch.arange(new, device=written.device)


def look_back(seen: Tensor, slots: Tensor) -> Tensor:
    """(B, 1, T, S): a token in slot t sees the real tokens in the slots up to its own."""
    order = torch.arange(seen.size(1), device=seen.device) <= slots[:, None]  # (T, S)
    return (order & seen[:, None, :])[:, None]
