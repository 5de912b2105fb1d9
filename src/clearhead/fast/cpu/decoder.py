"""A model on a CPU, for decoding: the same numbers without calling modules.

A decode step of a small model is about fifty operations of a few microseconds each. Calling modules, asking for hooks
and computing again what is the same in every step take several times as long. Here all of that is done once.

Shapes: B rows, T new tokens, S source tokens, D model, H heads, G key/value heads, K head size, P positions,
V vocabulary.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.fast.cpu.matrices import PackedLinear, ReorderedLinear
from clearhead.fast.joined import Copy, JoinedLinear, refresh
from clearhead.model import DecoderOnly, EncoderDecoder, State
from clearhead.model.attention import SHORT_ATTENTION_PAIRS, Attention, KVCache, masked_softmax
from clearhead.model.block import Block, FeedForward, Visibility
from clearhead.model.checks import check_length, check_prompt
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import LearnedPosition, RotaryPosition, Stack, padding_mask

MANY_ROWS = 16  # with at least this many rows, short sequences use the formula: it is faster than the fused kernel

Function = Callable[[Tensor], Tensor]
Caches = tuple[KVCache | None, KVCache | None]
Rotation = tuple[Tensor, Tensor]  # cosines, and sines with their signs: (B|1, 1, T, K) each
M = TypeVar("M", EncoderDecoder, DecoderOnly)


def joined_function(linears: Sequence[nn.Linear], copies: list[Copy]) -> Function:
    """The function of linear layers with the same input, outputs side by side; adds what is copied to `copies`."""
    first = linears[0]
    if isinstance(first, ReorderedLinear | PackedLinear):
        return first.shared.product
    if any(type(each) is not nn.Linear for each in linears):
        return first if len(linears) == 1 else lambda x: torch.cat([each(x) for each in linears], dim=-1)
    if len(linears) == 1:
        weight, bias = first.weight, first.bias
        return lambda x: F.linear(x, weight, bias)
    joined = JoinedLinear(linears)
    copies += joined.copies()
    return lambda x: F.linear(x, joined.weight, joined.bias)


def norm_function(norm: LayerNorm | RMSNorm) -> Function:
    """The function that a norm computes."""
    weight, epsilon, shape = norm.weight, norm.epsilon, norm.weight.shape
    if isinstance(norm, RMSNorm):
        return lambda x: torch.rms_norm(x, shape, weight, epsilon)
    bias = norm.bias
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """`model.attention.rotate` in three operations: (B, H, T, K) -> (B, H, T, K)."""
    cos, sin = rotation
    return torch.addcmul(x * cos, x.roll(x.size(-1) // 2, -1), sin)


class StackPass(NamedTuple):
    """What the blocks of a stack share while they read some tokens."""

    rows: int  # B
    visibility: Visibility
    rotation: Rotation | None


class DirectAttention:
    """Self-attention or cross-attention."""

    def __init__(self, attention: Attention, cross: bool, copies: list[Copy]) -> None:
        self.size = attention.head_size
        self.counts = [attention.heads, attention.kv_heads]
        self.grouped = attention.heads != attention.kv_heads
        self.norms = [norm_function(n) for n in (attention.query_norm, attention.key_norm) if n is not None]
        linears = [attention.query, attention.key, attention.value]
        parts = [linears[:1], linears[1:]] if cross else [linears]
        functions = [joined_function(part, copies) for part in parts]
        self.read = functions[0]
        self.read_source = functions[-1]
        self.out = joined_function([attention.out], copies)

    def split(self, x: Tensor, rows: int) -> Tensor:
        """(B T, n K) -> (B, n, T, K)."""
        if x.size(0) == rows:
            return x.view(rows, -1, 1, self.size)
        return x.view(rows, x.size(0) // rows, -1, self.size).transpose(1, 2)

    def to_itself(self, x: Tensor, to: StackPass, cache: KVCache | None) -> Tensor:
        """Self-attention: (B T, D) -> (B T, D)."""
        heads, shared = self.counts
        both, values = torch.split(self.split(self.read(x), to.rows), [heads + shared, shared], 1)
        if self.norms:
            both = torch.cat(
                [norm(part) for norm, part in zip(self.norms, torch.split(both, self.counts, 1), strict=True)], 1
            )
        if to.rotation is not None:
            both = rotate(both, to.rotation)
        queries, keys = torch.split(both, self.counts, 1)
        if cache is not None:
            keys, values = cache.append(keys, values)
        return self.attend(queries, keys, values, to.visibility.mask, to.visibility.causal)

    def to_source(self, x: Tensor, to: StackPass, cache: KVCache | None) -> Tensor:
        """Cross-attention, in which the hypotheses of a sentence share its source: (B T, D) -> (B T, D)."""
        memory = to.visibility.memory  # (B, S, D)
        assert memory is not None
        assert cache is not None
        if cache.length:
            keys, values = cache.read()
        else:
            keys, values = self.split(self.read_source(memory.flatten(0, 1)), memory.size(0)).chunk(2, dim=1)
            cache.store = [keys.contiguous(), values.contiguous()]  # which every step multiplies by
            cache.length = keys.size(2)
            keys, values = cache.store
        queries = self.split(self.read(x), memory.size(0))
        return self.attend(queries, keys, values, to.visibility.memory_mask, causal=False)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """All heads, and the matrix over them: (B, H, T, K) -> (B T, D)."""
        if (
            causal
            or self.grouped
            or queries.size(0) < MANY_ROWS
            or queries.size(2) * keys.size(2) > SHORT_ATTENTION_PAIRS
        ):
            mixed = F.scaled_dot_product_attention(
                queries, keys, values, mask, is_causal=causal, enable_gqa=self.grouped
            )
        else:
            scores = queries * self.size**-0.5 @ keys.mT  # (B, H, T, S)
            mixed = (scores.softmax(-1) if mask is None else masked_softmax(scores, mask)) @ values
        tokens = mixed if queries.size(2) == 1 else mixed.transpose(1, 2)  # heads side by side
        return self.out(tokens.reshape(-1, self.counts[0] * self.size))


class DirectBlock:
    """Self-attention, cross-attention where there is an encoder, feed-forward."""

    def __init__(self, block: Block, pre: bool, copies: list[Copy]) -> None:
        self.pre = pre
        self.attention = DirectAttention(block.attention, False, copies)
        self.attention_norm = norm_function(block.attention_add_norm.norm)
        self.cross = DirectAttention(block.cross_attention, True, copies) if block.cross else None
        self.cross_norm = norm_function(block.cross_attention_add_norm.norm) if block.cross else None
        self.feed_forward = feed_forward_function(block.feed_forward, copies)
        self.feed_forward_norm = norm_function(block.feed_forward_add_norm.norm)

    def __call__(self, x: Tensor, to: StackPass, caches: Caches) -> Tensor:
        """(B T, D) -> (B T, D)."""
        own, source = caches
        if self.pre:
            x = x + self.attention.to_itself(self.attention_norm(x), to, own)
            if self.cross and self.cross_norm:
                x = x + self.cross.to_source(self.cross_norm(x), to, source)
            return x + self.feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.attention.to_itself(x, to, own))
        if self.cross and self.cross_norm:
            x = self.cross_norm(x + self.cross.to_source(x, to, source))
        return self.feed_forward_norm(x + self.feed_forward(x))


def feed_forward_function(layer: FeedForward, copies: list[Copy]) -> Function:
    """The feed-forward sublayer."""
    activation = layer.activation
    down = joined_function([layer.down], copies)
    if layer.gate is None:
        up = joined_function([layer.up], copies)
        return lambda x: down(activation(up(x)))
    both = joined_function([layer.gate, layer.up], copies)

    def gated(x: Tensor) -> Tensor:
        gate, inner = both(x).chunk(2, dim=-1)
        return down(activation(gate) * inner)

    return gated


class DirectStack:
    """Embeddings, positions and blocks."""

    def __init__(self, stack: Stack, pre: bool, copies: list[Copy]) -> None:
        self.stack = stack
        self.weight = stack.embedding.weight
        self.blocks = [DirectBlock(block, pre, copies) for block in stack.blocks if isinstance(block, Block)]
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
        shared = StackPass(ids.size(0), to, rotation)
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


class DirectModel:
    """A model with `start` and `step`, for decoding on a CPU."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.layers = len(model.decoder.blocks)
        self.window = model.config.window
        pre = model.config.norm_order == "pre"
        self.copies: list[Copy] = []
        self.encoder = DirectStack(model.encoder, pre, self.copies) if isinstance(model, EncoderDecoder) else None
        self.decoder = DirectStack(model.decoder, pre, self.copies)
        assert model.head.project is not None
        self.project = joined_function([model.head.project], self.copies)

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
        state = State(self.layers, prompt.size(0), prompt.device, self.window)
        if memory is not None:
            state.set_memory(memory, mask)
        return self.step(prompt, state, real), state

    def step(self, ids: Tensor, state: State, real: Tensor | None = None) -> Tensor:
        """Read (B, T) more tokens, usually one: return the logits (B, V) of the next."""
        check_length(state.length + ids.size(1), self.decoder.stack.position_limit)
        positions, visibility = state.advance(ids, real)
        places = positions if state.masked else slice(state.length - ids.size(1), state.length)
        return self.project(self.decoder(ids, places, visibility, state.caches)[:, -1])


# model -> (its dtype, modules and parameters; its module-free form), for each model that has decoded on a CPU
DIRECT: weakref.WeakKeyDictionary[nn.Module, tuple[list[object], DirectModel]] = weakref.WeakKeyDictionary()


def direct_decoder(model: M) -> M | DirectModel:
    """Return the decoder for a CPU: module-free, or the model itself if hooks are registered."""
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
        with torch.inference_mode(False), torch.no_grad():  # so that `refresh` may change the copies anywhere
            direct = DirectModel(model)
        DIRECT[model] = parts, direct
    refresh(direct.copies)
    return direct
