"""A decoding state of fixed shape: its memory is allocated at the start and written in place, as CUDA graphs need it.

Shapes: B sentences, n hypotheses of each (rows: B*n), T new tokens, G key/value heads, K head size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.fast.torch_private import copy_all
from clearhead.model import State
from clearhead.model.attention import KVCache


class FixedCache:
    """Keys and values of one attention layer in tensors whose shape and address never change.

    Reading returns all slots; the mask hides those that are not written yet. `written` is the number of tokens so far,
    the newest included, on the device.
    """

    def __init__(self, capacity: int, written: Tensor) -> None:
        self.length = 0
        self.capacity = capacity
        self.written = written
        self.store: list[Tensor] = []

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write (B*n, G, T, K) new keys and values into their slots; return all slots (B*n, G, capacity, K)."""
        if not self.store:
            shape = (*keys.shape[:2], self.capacity, keys.size(3))
            self.store = [keys.new_zeros(shape), values.new_zeros(shape)]
        slots = newest_slots(self.written, keys.size(2))
        for stored, new in zip(self.store, (keys, values), strict=True):
            stored.index_copy_(2, slots, new)
        self.length += keys.size(2)
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """Return all slots."""
        keys, values = self.store
        return keys, values


class FixedState(State):
    """A state for at most `capacity` tokens, padding included.

    Replaying a CUDA graph advances only what is on the device: the caller has to make sure that the number of tokens
    stays within the capacity.
    """

    shrinks = False  # its shapes stay the same

    def __init__(self, layers: int, rows: int, device: torch.device, capacity: int, window: int = 0) -> None:
        self.capacity = capacity
        self.written = torch.zeros((), dtype=torch.long, device=device)  # tokens so far, where a CUDA graph sees it
        super().__init__(layers, rows, device, window)
        self.real = torch.zeros(rows, capacity, dtype=torch.bool, device=device)
        self.masked = True  # always: the slots that are not written yet

    def new_cache(self) -> FixedCache:
        """Return an empty cache for a self-attention layer."""
        return FixedCache(self.capacity, self.written)

    def append_real(self, real: Tensor) -> Tensor:
        """Store which of the new tokens (B*n, T) are real; return their slots (T,)."""
        length = self.length + real.size(1)
        require(
            length <= self.capacity,
            f"capacity = {self.capacity}: too small for {length} tokens; start with a larger capacity",
        )
        self.length = length
        self.written += real.size(1)
        slots = newest_slots(self.written, real.size(1))
        self.real.index_copy_(1, slots, real)
        return slots

    @classmethod
    def for_search(cls, state: State, capacity: int, source: int) -> FixedState:
        """Return a state of the same rows as another one, for `source` tokens of each sentence's source at most."""
        fixed = cls(len(state.caches), state.count.size(0), state.count.device, capacity, state.window)
        fixed.hypotheses = state.hypotheses
        for (cache, cross_cache), (other, other_cross) in zip(fixed.caches, state.caches, strict=True):
            cache.store = [resized(t, capacity) for t in other.store]
            if other_cross.store:
                cross_cache.store = [resized(t, source) for t in other_cross.store]
                cross_cache.length = source
        if state.memory is not None:
            sentences = state.memory.size(0)
            fixed.memory = state.memory.new_zeros(sentences, source, state.memory.size(2))
            fixed.memory_mask = fixed.real.new_zeros(sentences, 1, 1, source)
        return fixed

    def copy_from(self, state: State) -> None:
        """Take over the tokens of another state."""
        self.length = state.length
        self.written.fill_(state.length)
        self.real.fill_(True)  # a token sees no slots after its own
        self.real[:, : state.length] = state.real
        self.count.copy_(state.count)
        own: list[Tensor] = []
        others: list[Tensor] = []
        for (cache, cross_cache), (other, other_cross) in zip(self.caches, state.caches, strict=True):
            cache.length = state.length
            read = (*other.read(), *cross_read(other_cross))
            stored = (*cache.store, *cross_cache.store)
            own += [mine[:, :, : theirs.size(2)] for mine, theirs in zip(stored, read, strict=True)]
            others += read
        copy_all(own, others)
        if self.memory is not None and self.memory_mask is not None and state.memory is not None:
            length = state.memory.size(1)
            self.memory[:, :length] = state.memory
            self.memory_mask.fill_(False)
            self.memory_mask[..., :length] = True if state.memory_mask is None else state.memory_mask

    def take(self, t: Tensor, rows: Tensor) -> Tensor:
        """Return these rows of t, written into t unless their number changes: a CUDA graph knows t by its address."""
        kept = t.index_select(0, rows)
        return t.copy_(kept) if kept.size(0) == t.size(0) else kept


def resized(t: Tensor, slots: int) -> Tensor:
    """An empty tensor (B, G, slots, K) like (B, G, S, K) keys or values."""
    return t.new_zeros(*t.shape[:2], slots, t.size(3))


def cross_read(cache: KVCache) -> tuple[Tensor, ...]:
    """The keys and values of the source, or none in a model without an encoder."""
    return cache.read() if cache.store else ()


def newest_slots(written: Tensor, new: int) -> Tensor:
    """(T,): the slots of the newest tokens."""
    return written - new + torch.arange(new, device=written.device)
