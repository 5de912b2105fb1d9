"""The decode step of a fused model: one token of each row, over memory of fixed size.

Shapes: B sentences, W hypotheses of each, R rows, D model, H heads, K head size, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.fast.gpu.fixed import FixedState
from clearhead.fast.gpu.fused import FusedModel
from clearhead.fast.kernels.cached_attention import CacheTable, cached_attention
from clearhead.fast.kernels.token_attention import token_attention
from clearhead.model.stack import RotaryPosition


class DecodeStep:
    """`model.step` over a state whose keys and values stay in place when hypotheses change places."""

    def __init__(self, model: FusedModel, state: FixedState) -> None:
        self.model = model
        self.state = state
        self.rotation: tuple[Tensor, Tensor] | None = None
        self.positions: Tensor | None = None  # (T, D) what is added to the embedding at each position
        stack = model.decoder.stack
        device = state.count.device
        numbers = torch.arange(min(state.capacity, stack.position_limit or state.capacity), device=device)
        if isinstance(stack.position, RotaryPosition):
            cos, sin = stack.position(numbers, torch.float32)[:, 0, 0]
            self.rotation = cos.contiguous(), sin.contiguous()
        elif stack.position is not None:
            self.positions = stack.position(numbers, torch.float32)
        origin = torch.zeros(state.real.shape, dtype=torch.int32, device=device) if state.hypotheses > 1 else None
        self.table = CacheTable(state.written, state.real, state.count, origin)

    def restart(self) -> None:
        """All tokens so far are in their own rows; learned positions may have changed."""
        position = self.model.decoder.stack.position
        if self.positions is not None and position is not None:
            numbers = torch.arange(self.positions.size(0), device=self.positions.device)
            self.positions.copy_(position(numbers, torch.float32))
        if self.table.origin is not None:
            rows = torch.arange(self.table.origin.size(0), device=self.table.origin.device)
            self.table.origin.copy_(rows[:, None].expand_as(self.table.origin))

    def reorder(self, parents: Tensor) -> None:
        """Beam reordering, (B, W): hypothesis i of sentence b continues its hypothesis parents[b, i]."""
        if self.table.origin is not None:
            first = torch.arange(0, parents.numel(), parents.size(1), device=parents.device)
            rows = (first[:, None] + parents).flatten()
            self.table.origin.copy_(self.table.origin.index_select(0, rows))

    def __call__(self, ids: Tensor) -> Tensor:
        """Read one more token of each row (R,): return the logits (R, V) of the next."""
        added = None
        if self.positions is not None:
            last = self.positions.size(0) - 1  # steps after the end of a text may be beyond the last position
            added = self.positions.index_select(0, self.state.count[:, 0].clamp(max=last))
        hidden = self.model.decoder.hidden(self.model.decoder.embed(ids, added), self)
        self.state.written += 1
        self.state.count += 1
        return self.model.logits(hidden)

    def attend(self, index: int, qkv: Tensor) -> Tensor:
        """Self-attention over all tokens so far: (R, (H + 2 G) K) -> (R, H K)."""
        keys, values = self.state.caches[index][0].store
        return cached_attention(qkv, keys, values, self.table, self.rotation)

    def attend_to_source(self, index: int, queries: Tensor) -> Tensor:
        """Cross-attention, in which the hypotheses of a sentence share its source: (R, H K) -> (R, H K)."""
        keys, values = self.state.caches[index][1].store
        mask = self.state.memory_mask
        assert mask is not None
        split = queries.view(queries.size(0), -1, 1, keys.size(3))
        return token_attention(split, keys, values, mask).flatten(1)
