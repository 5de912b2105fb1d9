"""Attention: each token reads from the tokens it may see, weighted by how well its query matches their keys.

Shapes: B batch, T queries, S keys, D model, H heads, G key/value heads, K head size.
Masks are boolean and broadcast to (B, H, T, S): True where a query may attend to a key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model.norm import Tap, make_norm

SHORT_ATTENTION_PAIRS = (
    512  # query-key pairs: with no more than this, spelled-out attention is faster on a CPU than the fused kernel
)


class KVCache(Protocol):
    """The keys and values that one attention layer has computed so far; see cache.py."""

    length: int  # tokens so far
    store: list[Tensor]  # nothing yet, or keys and values, (B, G, S or more, K) each

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (B, G, T, K) new keys and values; return all (B, G, S, K), oldest first."""

    def read(self) -> tuple[Tensor, Tensor]:
        """Return all keys and values so far."""


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotate each pair of channels of x (B, H, T, K) by its angle; rotation (2, B|1, 1, T, K/2): cosines and sines.

    Channel i is paired with channel i + K/2. The dot product of a query and a key then depends on their distance only.
    """
    first, second = x.chunk(2, dim=-1)
    cos, sin = rotation.type_as(x)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Attention(nn.Module):
    """Multi-head attention: softmax(Q Kᵀ / sqrt(K)) V in each head, then one matrix over all heads.

    With fewer key/value heads than heads, groups of query heads share keys and values (grouped-query attention; with
    one, multi-query), which shrinks the cache.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads or config.heads
        self.head_size = config.head_size
        self.dropout = config.attention_dropout
        self.kernel: Callable[..., Tensor] = F.scaled_dot_product_attention  # or a faster one, with the same arguments
        self.rotate: Callable[[Tensor, Tensor], Tensor] = rotate
        bias = config.bias or config.qkv_bias
        self.query = nn.Linear(config.d_model, self.heads * self.head_size, bias)
        self.key = nn.Linear(config.d_model, self.kv_heads * self.head_size, bias)
        self.value = nn.Linear(config.d_model, self.kv_heads * self.head_size, bias)
        self.out = nn.Linear(self.heads * self.head_size, config.d_model, config.bias)
        self.query_norm = make_norm(config, self.head_size) if config.query_key_norm else None
        self.key_norm = make_norm(config, self.head_size) if config.query_key_norm else None
        self.queries = Tap()
        self.keys = Tap()
        self.values = Tap()
        self.mask = Tap()
        self.scores = Tap()
        self.weights = Tap()
        self.head_outputs = Tap()

    def forward(
        self,
        x: Tensor,  # (B, T, D) the queries' side
        context: Tensor | None = None,  # (B, S, D) the keys' and values' side; None: x itself (self-attention)
        mask: Tensor | None = None,
        causal: bool = False,  # causal mask, if T == S and no other mask is given
        rotation: Tensor | None = None,  # rotary positions of x
        cache: KVCache | None = None,  # keys and values of earlier calls
    ) -> Tensor:
        """Replace each token of x by a weighted mean of the values it attends to: (B, T, D) -> (B, T, D)."""
        assert not (causal and mask is not None), "a mask has to contain the causal rule itself"
        queries = self.split(self.query(x))  # (B, T, D) -> (B, H, T, K)
        queries = queries if self.query_norm is None else self.query_norm(queries)
        queries = self.queries(queries if rotation is None else self.rotate(queries, rotation))
        if context is not None and cache is not None and cache.length:
            keys, values = cache.read()  # cross-attention: the source's keys and values do not change
        else:
            keys, values = self.keys_and_values(x if context is None else context, rotation, cache)  # (B, G, S, K)
        outputs = self.head_outputs(self.attend(queries, keys, values, mask, causal))  # (B, H, T, K)
        return self.out(merge_heads(outputs))  # -> (B, T, H*K) -> (B, T, D)

    def split(self, x: Tensor) -> Tensor:
        """Split the channels into heads: (B, T, n*K) -> (B, n, T, K)."""
        return x.view(*x.shape[:2], -1, self.head_size).transpose(1, 2)

    def keys_and_values(self, context: Tensor, rotation: Tensor | None, cache: KVCache | None) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the context, after those in the cache: (B, S, D) -> (B, G, S, K) each."""
        keys = self.split(self.key(context))
        keys = keys if self.key_norm is None else self.key_norm(keys)
        values = self.split(self.value(context))
        keys = self.keys(keys if rotation is None else self.rotate(keys, rotation))
        values = self.values(values)
        return (keys, values) if cache is None else cache.append(keys, values)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Return softmax(Q Kᵀ / sqrt(K)) V, (B, H, T, K), from PyTorch's fused kernel or spelled out.

        It is spelled out where that is faster, and for hooks on `mask`, `scores` or `weights`. Hooks that only observe
        change nothing: the fused result is returned all the same.
        """
        assert not causal or queries.size(2) == keys.size(2), "the kernel's causal rule counts from the first key"
        dropout = self.dropout if self.training else 0.0
        observed = self.mask.observed or self.scores.observed or self.weights.observed
        faster = spelled_out_is_faster(queries, keys)
        if observed or faster:
            weights, replaced = self.weigh(queries, keys, mask, causal)
            if replaced or faster:
                return F.dropout(weights, dropout) @ self.repeat(values)  # (B, H, T, S) x (B, H, S, K)
        grouped = self.heads != self.kv_heads
        return self.kernel(queries, keys, values, mask, dropout, causal, enable_gqa=grouped)

    def weigh(self, queries: Tensor, keys: Tensor, mask: Tensor | None, causal: bool) -> tuple[Tensor, bool]:
        """Return the attention weights, (B, H, T, S), and whether a hook replaced them or what they come from."""
        own_scores = queries @ self.repeat(keys).mT / math.sqrt(self.head_size)  # (B, H, T, K) x (B, H, K, S)
        if causal:
            mask = causal_mask(queries.size(2), queries.device)
        elif mask is None:
            mask = torch.ones((), dtype=torch.bool, device=queries.device)
        own_mask = mask.expand_as(own_scores)
        mask = self.mask(own_mask)
        scores = self.scores(own_scores)
        own_weights = masked_softmax(scores, mask)
        weights = self.weights(own_weights)
        replaced = mask is not own_mask or scores is not own_scores or weights is not own_weights
        return weights, replaced

    def repeat(self, x: Tensor) -> Tensor:
        """Repeat keys or values for each query head that shares them: (B, G, S, K) -> (B, H, S, K)."""
        return x if self.heads == self.kv_heads else x.repeat_interleave(self.heads // self.kv_heads, dim=1)


def merge_heads(x: Tensor) -> Tensor:
    """Put the channels of all heads side by side: (B, H, T, K) -> (B, T, H*K)."""
    return x.transpose(1, 2).flatten(2)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that each query may attend to: (B, H, T, S) -> (B, H, T, S), rows that sum to 1."""
    weights = torch.where(mask, scores, -math.inf).softmax(dim=-1)
    return torch.where(mask, weights, 0.0)  # a query without any key gets weights of 0, not NaN


def causal_mask(length: int, device: torch.device, window: int = 0) -> Tensor:
    """Causal mask (T, T), True where a token may attend: to itself and earlier tokens, in a window if given."""
    mask = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return mask.triu(1 - window) if window else mask


def spelled_out_is_faster(queries: Tensor, keys: Tensor) -> bool:
    """Whether the formula beats the fused kernel: on a CPU, for short sequences, but not for a single query."""
    if torch.compiler.is_exporting() or queries.device.type != "cpu":
        return False  # an exported program is for all lengths
    return queries.size(2) > 1 and queries.size(2) * keys.size(2) <= SHORT_ATTENTION_PAIRS
