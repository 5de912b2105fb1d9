"""A block of a model on a CPU, for decoding, without calling modules; see direct.py.

Shapes: B rows, T new tokens, S source tokens, D model, H heads, G key/value heads, K head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.fast.cpu import matrices as packed
from clearhead.fast.cpu.matrices import PackedLinear, ReorderedLinear
from clearhead.model.attention import SHORT, Attention, KVCache, masked_softmax
from clearhead.model.block import Block, FeedForward, Visibility
from clearhead.model.norm import LayerNorm, RMSNorm

MANY_ROWS = 16  # from this many on, the formula is faster than the fused kernel for short sequences

Function = Callable[[Tensor], Tensor]
Caches = tuple[KVCache | None, KVCache | None]
Rotation = tuple[Tensor, Tensor]  # cosines, and sines with their signs: (B|1, 1, T, K) each


class JoinedLinear:
    """Linear layers of the same input as one; `copies` are pairs of a copied tensor and what it is a copy of."""

    def __init__(self, *linears: nn.Linear) -> None:
        self.copies: list[tuple[Tensor, Tensor]] = []
        first = linears[0]
        self.function: Function = first
        if isinstance(first, ReorderedLinear | PackedLinear):
            self.function = first.matrices.product
        elif all(type(each) is nn.Linear for each in linears):
            weight, bias = packed.joined(linears) if len(linears) > 1 else (first.weight, first.bias)
            self.function = lambda x: F.linear(x, weight, bias)
            if len(linears) > 1:
                self.copies = list(pairs(weight, [each.weight for each in linears]))
                self.copies += [] if bias is None else pairs(bias, [each.bias for each in linears])
        elif len(linears) > 1:
            self.function = lambda x: torch.cat([each(x) for each in linears], dim=-1)


def pairs(joined: Tensor, parts: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each part of a joined tensor, and the parameter that it is a copy of."""
    return zip(torch.split(joined, [part.size(0) for part in parts]), parts, strict=True)


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


class Pass(NamedTuple):
    """What the blocks of a stack share while they read some tokens."""

    rows: int  # B
    visibility: Visibility
    rotation: Rotation | None


class DirectAttention:
    """Self-attention or cross-attention."""

    def __init__(self, attention: Attention, cross: bool) -> None:
        self.size = attention.head_size
        self.counts = [attention.heads, attention.kv_heads]
        self.grouped = attention.heads != attention.kv_heads
        self.norms = [norm_function(n) for n in (attention.query_norm, attention.key_norm) if n is not None]
        linears = [attention.query, attention.key, attention.value]
        parts = [linears[:1], linears[1:]] if cross else [linears]
        self.joined = [JoinedLinear(*part) for part in parts]
        self.read = self.joined[0].function
        self.read_source = self.joined[-1].function
        self.out = JoinedLinear(attention.out).function

    def split(self, x: Tensor, rows: int) -> Tensor:
        """(B T, n K) -> (B, n, T, K)."""
        if x.size(0) == rows:
            return x.view(rows, -1, 1, self.size)
        return x.view(rows, x.size(0) // rows, -1, self.size).transpose(1, 2)

    def to_itself(self, x: Tensor, to: Pass, cache: KVCache | None) -> Tensor:
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

    def to_source(self, x: Tensor, to: Pass, cache: KVCache | None) -> Tensor:
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
        if causal or self.grouped or queries.size(0) < MANY_ROWS or queries.size(2) * keys.size(2) > SHORT:
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

    def __init__(self, block: Block, pre: bool) -> None:
        self.pre = pre
        self.attention = DirectAttention(block.attention, cross=False)
        self.attention_norm = norm_function(block.attention_add_norm.norm)
        self.cross = DirectAttention(block.cross_attention, cross=True) if block.cross else None
        self.cross_norm = norm_function(block.cross_attention_add_norm.norm) if block.cross else None
        self.feed_forward = feed_forward_function(block.feed_forward)
        self.feed_forward_norm = norm_function(block.feed_forward_add_norm.norm)

    def __call__(self, x: Tensor, to: Pass, caches: Caches) -> Tensor:
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

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        """All copied tensors, and what they are copies of."""
        attentions = [each for each in (self.attention, self.cross) if each]
        return [pair for attention in attentions for joined in attention.joined for pair in joined.copies]


def feed_forward_function(layer: FeedForward) -> Function:
    """The feed-forward sublayer."""
    activation = layer.activation
    up = JoinedLinear(layer.up).function
    down = JoinedLinear(layer.down).function
    if layer.gate is None:
        return lambda x: down(activation(up(x)))
    gate = JoinedLinear(layer.gate).function
    return lambda x: down(activation(gate(x)) * up(x))
