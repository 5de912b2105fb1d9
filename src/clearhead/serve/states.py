"""Decoding states with rows of different lengths: rows join and leave between two steps.

All rows have their newest token in the last slot, so a row that has read fewer tokens than others is padded on the
left. `combine` copies all rows into a state that is as long as its longest row; `replace` writes a few rows over those
that have left, which copies nothing else.

Shapes: B rows, S tokens so far, G key/value heads, K head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.model import State
from clearhead.model.cache import GrowingCache

SPARE = 64  # slots of a new cache beyond the tokens so far: that many steps need no copy

Part = tuple[State, Tensor]  # a state of a decoder-only model, and which of its rows (B,) to keep


def combine(parts: Sequence[Part]) -> State:
    """Return one state with these rows of several states, in this order."""
    counts = torch.cat([state.count[rows] for state, rows in parts])  # (B, 1)
    length = int(counts.max())
    layers = len(parts[0][0].caches)
    combined = State(layers, counts.size(0), counts.device, parts[0][0].window)
    combined.length = length
    combined.count = counts
    combined.real = torch.arange(length, device=counts.device) >= length - counts  # (B, S)
    combined.masked = bool((counts < length).any())
    for layer in range(layers):
        cache = GrowingCache()
        cache.store = [combine_stores(parts, layer, index, length) for index in (0, 1)]
        cache.length = length
        combined.caches[layer] = (cache, GrowingCache())
    return combined


def combine_stores(parts: Sequence[Part], layer: int, index: int, length: int) -> Tensor:
    """Return the keys (index 0) or values (1) of all rows, (B, G, S and SPARE, K); zeros where there is padding."""
    stores = [state.caches[layer][0].store[index] for state, _ in parts]
    heads, size = stores[0].size(1), stores[0].size(3)
    rows_in_all = sum(rows.numel() for _, rows in parts)
    combined = stores[0].new_zeros(rows_in_all, heads, length + SPARE, size)
    first = 0
    for (state, rows), store in zip(parts, stores, strict=True):
        width = min(state.length, length)
        newest = store[:, :, state.length - width : state.length]
        combined[first : first + rows.numel(), :, length - width : length] = newest.index_select(0, rows)
        first += rows.numel()
    return combined


def replace(state: State, places: Tensor, joining: State) -> None:
    """Write all rows of another state, which is not longer, over these rows (B,)."""
    first = state.length - joining.length
    for (cache, _), (new, _) in zip(state.caches, joining.caches, strict=True):
        for old_store, new_store in zip(cache.store, new.store, strict=True):
            old_store[places, :, first : state.length] = new_store[:, :, : joining.length]
    state.count[places] = joining.count
    real = state.real.clone()
    real[places] = torch.arange(state.length, device=places.device) >= state.length - joining.count
    state.masked = True
    state.real = real
