"""The one block: attention, perhaps cross-attention, feed-forward, each inside add & norm.

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
from clearhead.model.attention import Attention, Cache, Tap

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # max(0, x): the paper
    "gelu": F.gelu,  # x Φ(x), with the exact normal distribution: BERT
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # the same, approximated: GPT-2
    "swiglu": F.silu,  # x sigmoid(x), the gate of SwiGLU: Llama
}


class LayerNorm(nn.Module):
    """Mean 0 and deviation 1 over the channels of each token, then a learned gain and bias."""

    def __init__(self, size: int, epsilon: float, bias: bool = True) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None
        self.normalized = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), fused unless a hook replaces `normalized`."""
        if self.normalized.watched:
            wide = widen(x)
            mean = wide.mean(-1, keepdim=True)
            variance = wide.var(-1, keepdim=True, correction=0)  # biased: divided by D, not by D - 1
            own = (wide - mean) / torch.sqrt(variance + self.epsilon)
            if (normalized := self.normalized(own)) is not own:
                y = normalized * self.weight
                return (y if self.bias is None else y + self.bias).to(x.dtype)
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.epsilon)


class RMSNorm(nn.Module):
    """Root mean square 1 over the channels of each token, then a learned gain: no mean is taken away, nothing added."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))
        self.normalized = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), fused unless a hook replaces `normalized`."""
        if self.normalized.watched:
            wide = widen(x)
            own = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
            if (normalized := self.normalized(own)) is not own:
                return (normalized * self.weight).to(x.dtype)
        return F.rms_norm(x, x.shape[-1:], self.weight, self.epsilon)


def widen(x: Tensor) -> Tensor:
    """As float32 at least, in which the fused kernels sum, too."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def make_norm(config: ModelConfig) -> LayerNorm | RMSNorm:
    """The norm that the settings ask for."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_epsilon)
    return LayerNorm(config.d_model, config.norm_epsilon, config.bias)


class FeedForward(nn.Module):
    """Two matrices with a bend between them, the same for every token: W₂ f(W₁ x); SwiGLU gates the inside."""

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
    """The residual connection: norm(x + f(x)), or with the norm first x + f(norm(x)); dropout on what f adds."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm, self.norm_first = make_norm(config), config.norm_order == "pre"
        self.dropout, self.added = nn.Dropout(config.dropout), Tap()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D): x with what the sublayer has to add."""
        if self.norm_first:
            return self.added(x + self.dropout(sublayer(self.norm(x))))
        return self.norm(self.added(x + self.dropout(sublayer(x))))


class Sight(NamedTuple):
    """What the tokens of a stack may see: the same for each of its blocks."""

    mask: Tensor | None = None  # (B, 1, T|1, S) among themselves; None: everything
    causal: bool = False  # or: nothing later than themselves
    memory: Tensor | None = None  # (B, S, D) the encoder's output
    memory_mask: Tensor | None = None  # (B, 1, 1, S) its real tokens


class Block(nn.Module):
    """Self-attention, in the decoder of an encoder-decoder cross-attention, feed-forward."""

    def __init__(self, config: ModelConfig, cross: bool = False) -> None:
        super().__init__()
        self.cross = cross
        self.attention, self.attention_add_norm = Attention(config), AddNorm(config)
        if cross:
            self.cross_attention, self.cross_attention_add_norm = Attention(config), AddNorm(config)
        self.feed_forward, self.feed_forward_add_norm = FeedForward(config), AddNorm(config)

    def forward(
        self,
        x: Tensor,
        sight: Sight,
        rotation: Tensor | None = None,
        caches: tuple[Cache | None, Cache | None] = (None, None),
    ) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        own, cross = caches
        x = self.attention_add_norm(
            x,
            lambda h: self.attention(h, mask=sight.mask, causal=sight.causal, rotation=rotation, cache=own),
        )
        if self.cross:
            assert sight.memory is not None, "a decoder of an encoder-decoder needs something to look at"
            x = self.cross_attention_add_norm(
                x,
                lambda h: self.cross_attention(h, context=sight.memory, mask=sight.memory_mask, cache=cross),
            )
        return self.feed_forward_add_norm(x, self.feed_forward)
