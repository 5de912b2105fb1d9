"""A model on a CPU, for decoding: the same numbers without calling modules.

A decode step of a small model is about fifty operations of a few microseconds each. Calling modules, asking for hooks
and computing again what is the same in every step take several times as long. Here all of that is done once.

Shapes: B rows, T new tokens, D model, K head size, P positions, V vocabulary.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from clearhead.fast.cpu.block import Caches, DirectBlock, JoinedLinear, Pass, norm_function
from clearhead.model import DecoderOnly, EncoderDecoder, State
from clearhead.model.block import Block, Visibility
from clearhead.model.cache import GrowingCache
from clearhead.model.checks import check_length, check_prompt
from clearhead.model.stack import LearnedPosition, RotaryPosition, Stack, padding_mask

SMALL_CACHE = 2**16  # numbers: a cache of at most this size is copied at each step

M = TypeVar("M", EncoderDecoder, DecoderOnly)


class DirectStack:
    """Embeddings, positions and blocks."""

    def __init__(self, stack: Stack, pre: bool) -> None:
        self.stack = stack
        self.weight = stack.embedding.weight
        self.blocks = [DirectBlock(block, pre) for block in stack.blocks if isinstance(block, Block)]
        self.embedding_norm = None if stack.embedding_norm is None else norm_function(stack.embedding_norm)
        self.norm = None if stack.norm is None else norm_function(stack.norm)
        self.tables: list[Tensor] = []

    def __call__(self, ids: Tensor, places: slice | Tensor, to: Visibility, caches: Sequence[Caches] = ()) -> Tensor:
        """From ids (B, T) at some positions, the same in all rows or (B, T), to hidden states (B, T, D)."""
        x = self.weight.index_select(0, ids.flatten()) * self.stack.embedding.scale  # (B T, D)
        last = places.stop if isinstance(places, slice) else int(places.amax()) + 1
        rows = [table[places] for table in self.position_tables(last)]  # (T, K or D) or (B, T, K or D)
        rotation = None
        if len(rows) == 2:
            rotation = rows[0].unsqueeze(-3), rows[1].unsqueeze(-3)
        elif rows:
            x = (x.view(*ids.shape, -1) + rows[0]).flatten(0, 1)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        shared = Pass(ids.size(0), to, rotation)
        for index, block in enumerate(self.blocks):
            x = block(x, shared, caches[index] if caches else (None, None))
        return (x if self.norm is None else self.norm(x)).view(*ids.shape, -1)

    def position_tables(self, length: int) -> list[Tensor]:
        """Tables with a row for each position below `length` or more: rotations (two tables), or what is added."""
        check_length(length, self.stack.position_limit)
        position = self.stack.position
        if isinstance(position, LearnedPosition):
            return [position.table.weight]
        tables = self.tables
        if position is None or (tables and tables[0].size(0) >= length):
            return tables
        dtype = self.weight.dtype
        found = position(torch.arange(max(64, 2 * length)), dtype).to(dtype)
        if isinstance(position, RotaryPosition):
            cos, sin = found[:, 0, 0]  # (P, K/2) each
            self.tables = tables = [torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)]
        else:
            self.tables = tables = [found]
        return tables


class DirectCache(GrowingCache):
    """Keys and values of one attention layer; copying few of them takes less time than writing into spare memory."""

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (B, G, T, K) new keys and values; return all (B, G, S, K), oldest first."""
        if keys.numel() > SMALL_CACHE or (self.store and not self.exact):
            return super().append(keys, values)
        if self.store:
            keys = torch.cat([self.store[0], keys], dim=2)
            values = torch.cat([self.store[1], values], dim=2)
        self.store = [keys, values]
        self.length = keys.size(2)
        return keys, values

    @property
    def exact(self) -> bool:
        """Whether the cache is small, and its memory has no spare slots."""
        return self.store[0].size(2) == self.length and self.store[0].numel() <= SMALL_CACHE


class DirectState(State):
    """A state that reads single tokens in few operations, as long as there is no padding."""

    def new_cache(self) -> DirectCache:
        """Return an empty cache for a self-attention layer."""
        return DirectCache()

    @property
    def real(self) -> Tensor:
        """(B, S) True at real tokens: without padding, all of them."""
        if self.masked:
            return self.stored_real
        return torch.ones(self.count.size(0), self.length, dtype=torch.bool, device=self.count.device)

    @real.setter
    def real(self, real: Tensor) -> None:
        self.stored_real = real

    def advance(self, ids: Tensor, real: Tensor | None) -> tuple[Tensor, Visibility]:
        """Count (B, T) new tokens: return their positions and what each may see."""
        if real is not None and not self.masked:
            self.real = self.real  # stored from now on
        if self.masked or self.window or real is not None or ids.size(1) > 1:
            return super().advance(ids, real)
        self.length += 1
        self.count += 1
        return self.count - 1, Visibility(None, causal=False, memory=self.memory, memory_mask=self.memory_mask)


class DirectModel:
    """A model with `start` and `step`, for decoding on a CPU."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.layers = len(model.decoder.blocks)
        self.window = model.config.window
        pre = model.config.norm_order == "pre"
        self.encoder = DirectStack(model.encoder, pre) if isinstance(model, EncoderDecoder) else None
        self.decoder = DirectStack(model.decoder, pre)
        assert model.head.project is not None
        self.project = JoinedLinear(model.head.project).function
        stacks = [self.decoder] if self.encoder is None else [self.encoder, self.decoder]
        self.copies = [pair for stack in stacks for block in stack.blocks for pair in block.copies()]

    @torch.inference_mode()
    def refresh(self) -> None:
        """Copy the model's weights again: they may have changed."""
        if self.copies:
            torch._foreach_copy_([mine for mine, _ in self.copies], [theirs for _, theirs in self.copies])

    def start(self, *inputs: Tensor | None) -> tuple[Tensor, State]:
        """The model's `start`, with its positional arguments."""
        if self.encoder is None:
            prompt, real = (*inputs, None)[:2]
            return self.read_prompt(prompt, real)
        source, prompt, source_real, prompt_real = (*inputs, None, None)[:4]
        assert source is not None
        mask = padding_mask(source_real)
        memory = self.encoder(source, slice(source.size(1)), Visibility(mask))
        return self.read_prompt(prompt, prompt_real, memory, mask)

    def read_prompt(
        self, prompt: Tensor | None, real: Tensor | None, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Let the decoder read a prompt (B, T): return the logits (B, V) of the first new token, and the state."""
        assert prompt is not None
        check_prompt(prompt)
        state = DirectState(self.layers, prompt.size(0), prompt.device, self.window)
        if memory is not None:
            state.set_memory(memory, mask)
        return self.step(prompt, state, real), state

    def step(self, ids: Tensor, state: State, real: Tensor | None = None) -> Tensor:
        """Read (B, T) more tokens, usually one: return the logits (B, V) of the next."""
        check_length(state.length + ids.size(1), self.decoder.stack.position_limit)
        positions, visibility = state.advance(ids, real)
        places = positions if state.masked else slice(state.length - ids.size(1), state.length)
        return self.project(self.decoder(ids, places, visibility, state.caches)[:, -1])


# of the models on a CPU that have decoded: dtype, modules and parameters, and the same without modules
DIRECT: weakref.WeakKeyDictionary[nn.Module, tuple[list[object], DirectModel]] = weakref.WeakKeyDictionary()


def direct_decoder(model: M) -> M | DirectModel:
    """Return what to decode with on a CPU: the model itself where a hook observes a module, or changes its output."""
    parts: list[object] = [next(model.parameters()).dtype]
    for module in itertools.islice(model.modules(), 1, None):  # the model itself must not be kept alive
        if module._forward_hooks or module._forward_pre_hooks:
            return model
        parts.append(module)
        parts += module._parameters.values()
    if model._forward_hooks or model._forward_pre_hooks:
        return model
    known, direct = DIRECT.get(model, ([], None))
    if direct is None or len(known) != len(parts) or any(map(operator.is_not, known, parts)):
        direct = DirectModel(model)
        DIRECT[model] = parts, direct
    direct.refresh()
    return direct
