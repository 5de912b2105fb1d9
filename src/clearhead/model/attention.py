"""Attention: every token asks a question, every token it may see answers by how well it fits.

Shapes: B batch, T queries, S keys, D model, H heads, G key/value heads, K head size.
Masks are boolean and broadcast to (B, H, T, S): True where a query may look.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig

FEW = 512  # pairs of a query and a key: up to so many, a CPU is faster without the fused kernel


class Tap(nn.Identity):
    """A named place where a forward hook can watch an intermediate tensor, or replace it by returning another."""

    @property
    def watched(self) -> bool:
        """Whether anybody looks: only then is it worth spelling out what a fused kernel skips."""
        hooks = (self._forward_hooks, self._forward_pre_hooks, self._backward_hooks, self._backward_pre_hooks)
        return any(hooks)


class Cache(Protocol):
    """The keys and values that one attention has already computed; how they are stored is the cache's secret."""

    length: int

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in (B, G, T, K) new keys and values; give all (B, G, S, K), oldest first."""

    def read(self) -> tuple[Tensor, Tensor]:
        """All keys and values so far."""


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn each pair of channels of x (B, H, T, K) by its angle; rotation (2, B|1, 1, T, K/2) holds cosines and sines.

    Channel i is paired with channel i + K/2. After it, the dot product of a query and a key depends on their distance.
    """
    first, second = x.chunk(2, dim=-1)
    cos, sin = rotation.type_as(x)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Attention(nn.Module):
    """Multi-head attention: softmax(Q Kᵀ / sqrt(K)) V in each head, all heads joined by one matrix.

    Fewer key/value heads than heads share their keys and values among groups of queries (one: multi-query), which
    shrinks the cache. PyTorch's fused kernel runs, or the formula itself where it is faster; for hooks on `mask`,
    `scores` or `weights` the same sum is spelled out beside it, and takes its place only if a hook replaces something.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_size = config.heads, config.kv_heads or config.heads, config.head_size
        self.dropout = config.attention_dropout
        self.query = nn.Linear(config.d_model, self.heads * self.head_size, config.bias)
        self.key = nn.Linear(config.d_model, self.kv_heads * self.head_size, config.bias)
        self.value = nn.Linear(config.d_model, self.kv_heads * self.head_size, config.bias)
        self.out = nn.Linear(self.heads * self.head_size, config.d_model, config.bias)
        self.queries, self.keys, self.values = Tap(), Tap(), Tap()
        self.mask, self.scores, self.weights, self.head_outputs = Tap(), Tap(), Tap(), Tap()

    def forward(
        self,
        x: Tensor,  # (B, T, D) asks
        context: Tensor | None = None,  # (B, S, D) answers; None: x itself (self-attention)
        mask: Tensor | None = None,
        causal: bool = False,  # no token sees a later one; only where T == S, and then without a mask
        rotation: Tensor | None = None,  # rotary positions of x
        cache: Cache | None = None,  # what was answered before; for a fixed context it is asked only once
    ) -> Tensor:
        """Each token of x becomes a mixture of what the tokens it may see have to say: (B, T, D) -> (B, T, D)."""
        assert not (causal and mask is not None), "a mask of the caller's must contain the causal rule itself"
        queries = self.split(self.query(x))  # (B, T, D) -> (B, H, T, K)
        queries = self.queries(queries if rotation is None else rotate(queries, rotation))
        if context is not None and cache is not None and cache.length:
            keys, values = cache.read()  # cross-attention: the source does not change
            mixed = self.attend_together(queries, keys, values, mask)
        else:
            keys, values = self.answer(x if context is None else context, rotation, cache)  # (B, G, S, K) each
            mixed = self.attend(queries, keys, values, mask, causal)  # (B, H, T, K)
        return self.out(self.head_outputs(mixed).transpose(1, 2).flatten(2))  # -> (B, T, H*K) -> (B, T, D)

    def split(self, x: Tensor) -> Tensor:
        """Cut the channels into heads: (B, T, n*K) -> (B, n, T, K)."""
        return x.view(*x.shape[:2], -1, self.head_size).transpose(1, 2)

    def answer(self, context: Tensor, rotation: Tensor | None, cache: Cache | None) -> tuple[Tensor, Tensor]:
        """Keys and values of the context, after those of the cache."""
        keys, values = self.split(self.key(context)), self.split(self.value(context))  # (B, S, D) -> (B, G, S, K)
        if rotation is not None:
            keys = rotate(keys, rotation)
        keys, values = self.keys(keys), self.values(values)
        return (keys, values) if cache is None else cache.append(keys, values)

    def attend_together(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """The same where n rows in a row share one row of keys, as the hypotheses of a beam do: they ask together."""
        n = len(queries) // len(keys)
        queries = queries.view(len(keys), n, *queries.shape[1:])  # (B*n, H, T, K) -> (B, n, H, T, K)
        queries = queries.transpose(1, 2).flatten(2, 3)  # -> (B, H, n*T, K)
        mixed = self.attend(queries, keys, values, mask, causal=False)
        return mixed.view(*mixed.shape[:2], n, -1, self.head_size).transpose(1, 2).flatten(0, 1)  # -> (B*n, H, T, K)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """softmax(Q Kᵀ / sqrt(K)) V, in one kernel unless it is slower or a hook replaces a part: (B, H, T, K)."""
        assert not causal or queries.size(2) == keys.size(2), "the kernel's causal rule counts from the first key"
        dropout = self.dropout if self.training else 0.0
        weights = None
        if self.mask.watched or self.scores.watched or self.weights.watched:
            weights = self.spell_out(queries, keys, mask, causal)
        if weights is None and few_pairs(queries, keys):
            seen = causal_mask(queries.size(2), queries.device) if causal else mask
            weights = weigh(self.compare(queries, keys), seen)
        if weights is not None:
            return F.dropout(weights, dropout) @ self.repeat(values)  # (B, H, T, S) x (B, H, S, K)
        grouped = self.heads != self.kv_heads
        return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal, enable_gqa=grouped)

    def spell_out(self, queries: Tensor, keys: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
        """What the fused kernel weighs the values by, one formula a line; the weights if a hook replaced any of it."""
        own_scores = self.compare(queries, keys)
        if causal:
            mask = causal_mask(queries.size(2), queries.device)
        elif mask is None:
            mask = torch.ones((), dtype=torch.bool, device=queries.device)
        own_mask = mask.expand_as(own_scores)
        mask, scores = self.mask(own_mask), self.scores(own_scores)
        own_weights = weigh(scores, mask)
        weights = self.weights(own_weights)
        untouched = mask is own_mask and scores is own_scores and weights is own_weights
        return None if untouched else weights

    def compare(self, queries: Tensor, keys: Tensor) -> Tensor:
        """How well each key fits each query: (B, H, T, K) x (B, H, K, S) -> (B, H, T, S)."""
        return queries @ self.repeat(keys).mT / math.sqrt(self.head_size)

    def repeat(self, x: Tensor) -> Tensor:
        """Keys or values, once for each query head that shares them: (B, G, S, K) -> (B, H, S, K)."""
        return x if self.heads == self.kv_heads else x.repeat_interleave(self.heads // self.kv_heads, dim=1)


def weigh(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over what each query may see, so that its weights sum to 1: (B, H, T, S) -> (B, H, T, S)."""
    if mask is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # a row that may see nothing gets nothing, not NaN


def few_pairs(queries: Tensor, keys: Tensor) -> bool:
    """Whether the formula is faster than the fused kernel: on a CPU, for short sentences, but not for single tokens."""
    return queries.device.type == "cpu" and queries.size(2) > 1 and queries.size(2) * keys.size(2) <= FEW


def causal_mask(length: int, device: torch.device) -> Tensor:
    """(T, T): a token sees itself and what stands before it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
