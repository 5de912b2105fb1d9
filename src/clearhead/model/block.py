"""The block: self-attention, cross-attention where there is an encoder, feed-forward, each inside add & norm.

Shapes: B batch, T tokens, S source tokens, D model, F feed-forward.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model.attention import Attention, KVCache
from clearhead.model.norm import Tap, make_norm

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # max(0, x): the paper
    "gelu": F.gelu,  # x Φ(x), with the exact normal distribution: BERT
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # GELU by its tanh approximation: GPT-2
    "silu": F.silu,  # x sigmoid(x): Marian
    "swiglu": F.silu,  # SwiGLU, a SiLU gate: Llama
    "tanh": torch.tanh,  # BERT's dense layer before the classes
}


class FeedForward(nn.Module):
    """Two matrices with a nonlinearity between them, applied to each token alone: W₂ f(W₁ x), or gated (SwiGLU)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, config.bias) if config.activation == "swiglu" else None
        self.up = nn.Linear(config.d_model, config.d_ff, config.bias)
        self.down = nn.Linear(config.d_ff, config.d_model, config.bias)
        self.activation = ACTIVATIONS[config.activation]
        self.inner = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, F) -> (B, T, D)."""
        inner = self.activation(self.up(x)) if self.gate is None else self.activation(self.gate(x)) * self.up(x)
        return self.down(self.inner(inner))


class AddNorm(nn.Module):
    """The residual connection: norm(x + f(x)) (post-norm) or x + f(norm(x)) (pre-norm), with dropout on f's output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model)
        self.norm_first = config.norm_order == "pre"
        self.dropout = nn.Dropout(config.dropout)
        self.added = Tap()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the sublayer's output to x: (B, T, D) -> (B, T, D)."""
        if self.norm_first:
            return self.added(x + self.dropout(sublayer(self.norm(x))))
        return self.norm(self.added(x + self.dropout(sublayer(x))))


class Visibility(NamedTuple):
    """What the tokens of a stack may attend to, the same in each of its blocks."""

    mask: Tensor | None = None  # (B, 1, T|1, S) for self-attention; None: every token
    causal: bool = False  # a causal mask, in place of `mask`
    memory: Tensor | None = None  # (B, S, D) the encoder's output, for cross-attention
    memory_mask: Tensor | None = None  # (B, 1, 1, S) True at its real tokens


class Block(nn.Module):
    """Self-attention, cross-attention (only in the decoder of an encoder-decoder), feed-forward."""

    def __init__(self, config: ModelConfig, cross: bool = False) -> None:
        super().__init__()
        self.cross = cross
        self.attention = Attention(config)
        self.attention_add_norm = AddNorm(config)
        if cross:
            self.cross_attention = Attention(config)
            self.cross_attention_add_norm = AddNorm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_add_norm = AddNorm(config)

    def forward(
        self,
        x: Tensor,
        visibility: Visibility,
        rotation: Tensor | None = None,
        caches: tuple[KVCache | None, KVCache | None] = (None, None),
    ) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        mask, causal, memory, memory_mask = visibility
        cache, cross_cache = caches
        x = self.attention_add_norm(x, lambda h: self.attention(h, None, mask, causal, rotation, cache))
        if self.cross:
            assert memory is not None, "cross-attention needs the encoder's output"
            x = self.cross_attention_add_norm(x, lambda h: self.attend_to_memory(h, memory, memory_mask, cross_cache))
        return self.feed_forward_add_norm(x, self.feed_forward)

    def attend_to_memory(self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: KVCache | None) -> Tensor:
        """Cross-attention: (B, T, D) -> (B, T, D).

        Memory may have fewer rows than x: the n hypotheses of a sentence share one, and become n*T queries to it.
        """
        queries = x.reshape(memory.size(0), -1, x.size(-1))  # (B*n, T, D) -> (B, n*T, D)
        return self.cross_attention(queries, memory, mask, cache=cache).view_as(x)
