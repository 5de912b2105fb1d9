"""What a model keeps between two decoding steps: keys and values, and which tokens are real.

Shapes: B sentences, n hypotheses of each (rows: B*n), T new tokens, S tokens so far, G key/value heads, K head size.
Here caches grow; fast/gpu/fixed.py has the same with fixed shapes, for CUDA graphs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.model.attention import KVCache
from clearhead.model.block import Visibility
from clearhead.model.checks import check_real


class GrowingCache:
    """Keys and values of one attention layer; the capacity doubles when it is full, so that few appends copy it all."""

    def __init__(self) -> None:
        self.length = 0
        self.store: list[Tensor] = []  # keys and values, (B*n, G, capacity, K) each

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (B*n, G, T, K) new keys and values; return all (B*n, G, S, K), oldest first."""
        end = self.length + keys.size(2)
        if not self.store:
            self.store = [keys[:, :, :0], values[:, :, :0]]
        self.store = [self._write(old, new, end) for old, new in zip(self.store, (keys, values), strict=True)]
        self.length = end
        return self.read()

    def _write(self, old: Tensor, new: Tensor, end: int) -> Tensor:
        """Copy new keys or values after the old ones: a copy, since a hook may hold `new`."""
        if end > old.size(2):
            larger = old.new_empty(*old.shape[:2], max(end, 2 * old.size(2)), old.size(3))
            larger[:, :, : self.length] = old[:, :, : self.length]
            old = larger
        old[:, :, self.length : end] = new
        return old

    def read(self) -> tuple[Tensor, Tensor]:
        """Return all keys and values so far."""
        keys, values = self.store
        return keys[:, :, : self.length], values[:, :, : self.length]


class State:
    """All caches of a decoder, and which tokens so far are real.

    A row is a sentence, or after `fork` one of n hypotheses of a sentence. The hypotheses of a sentence are neighbours
    and share its source: the encoder's output, and the keys and values of cross-attention, have one row a sentence.
    """

    shrinks = True  # whether dropping finished sentences saves time

    def __init__(self, layers: int, rows: int, device: torch.device, window: int = 0) -> None:
        self.window = window  # tokens that each may attend to; 0: all so far
        self.hypotheses = 1  # of each sentence
        self.length = 0  # tokens so far, padding included
        self.real = torch.zeros(rows, 0, dtype=torch.bool, device=device)  # (B*n, S) True at real tokens
        self.count = torch.zeros(rows, 1, dtype=torch.long, device=device)  # (B*n, 1) real tokens so far
        self.masked = False  # whether there may be padding: if not, the fast kernels need no mask
        self.memory: Tensor | None = None  # (B, S, D) the encoder's output, in an encoder-decoder
        self.memory_mask: Tensor | None = None
        self.caches: list[tuple[KVCache, KVCache]] = [  # of each layer's self-attention and cross-attention
            (self.new_cache(), GrowingCache()) for _ in range(layers)
        ]

    def new_cache(self) -> KVCache:
        """Return an empty cache for a self-attention layer."""
        return GrowingCache()

    def set_memory(self, memory: Tensor, memory_mask: Tensor | None) -> None:
        """Keep copies of the encoder's output and its mask: `select` may write into them."""
        self.memory = memory.clone()
        self.memory_mask = None if memory_mask is None else memory_mask.clone()

    def advance(self, ids: Tensor, real: Tensor | None) -> tuple[Tensor, Visibility]:
        """Count (B*n, T) new tokens, `real` None if none is padding: return their positions and what each may see."""
        check_real(real)
        first = self.length == 0
        self.masked = self.masked or real is not None
        real = torch.ones_like(ids, dtype=torch.bool) if real is None else real
        slots = self.append_real(real)
        single = ids.size(1) == 1
        masked = self.masked or self.window > 0
        mask = past_mask(self.real, slots, self.window) if masked or not (first or single) else None
        causal = mask is None and not single  # the first tokens; a single one may see all that came before
        return self._positions(real), Visibility(mask, causal, self.memory, self.memory_mask)

    def append_real(self, real: Tensor) -> Tensor:
        """Store which of the new tokens (B*n, T) are real; return their slots (T,)."""
        self.length += real.size(1)
        self.real = torch.cat([self.real, real], dim=1)
        return torch.arange(self.length - real.size(1), self.length, device=real.device)

    def _positions(self, real: Tensor) -> Tensor:
        """(B*n, T): the number of real tokens before each; for padding, any valid position."""
        positions = (self.count + real.cumsum(1) - 1).clamp(min=0)
        self.count += real.sum(1, keepdim=True)
        return positions

    def fork(self, hypotheses: int) -> None:
        """Make n hypotheses of each sentence, all equal so far."""
        rows = torch.arange(self.count.size(0), device=self.count.device)
        self.hypotheses *= hypotheses
        self._keep_rows(rows.repeat_interleave(hypotheses))

    def reorder(self, parents: Tensor) -> None:
        """Beam reordering, (B, n): hypothesis i of sentence b continues its hypothesis parents[b, i]."""
        first = torch.arange(0, self.count.size(0), self.hypotheses, device=parents.device)
        self._keep_rows((first[:, None] + parents).flatten())

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences (B,) with all their hypotheses, in this order; one may be named more than once."""
        if self.memory is not None:
            self.memory = self.take(self.memory, sentences)
            self.memory_mask = None if self.memory_mask is None else self.take(self.memory_mask, sentences)
            for _, cross_cache in self.caches:
                cross_cache.store = [self.take(t, sentences) for t in cross_cache.store]
        hypotheses = torch.arange(self.hypotheses, device=sentences.device)
        self._keep_rows((sentences[:, None] * self.hypotheses + hypotheses).flatten())

    def _keep_rows(self, rows: Tensor) -> None:
        """Keep these rows of all that belongs to single hypotheses."""
        for cache, _ in self.caches:
            cache.store = [self.take(t, rows) for t in cache.store]
        self.real = self.take(self.real, rows)
        self.count = self.take(self.count, rows)

    def take(self, t: Tensor, rows: Tensor) -> Tensor:
        """Return these rows of t."""
        return t.index_select(0, rows)


def past_mask(real: Tensor, slots: Tensor, window: int = 0) -> Tensor:
    """(B*n, 1, T, S): a token in slot t may attend to the real tokens in slots 0 to t, or to the last of them."""
    distance = slots[:, None] - torch.arange(real.size(1), device=real.device)  # (T, S)
    order = (distance >= 0) & (distance < window) if window else distance >= 0
    return (order & real[:, None, :])[:, None]
