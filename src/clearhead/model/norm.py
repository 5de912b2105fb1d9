"""Taps, where a tensor can be looked at, and the two norms: LayerNorm and RMSNorm.

Shapes: B batch, T tokens, D channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig


class Tap(nn.Identity):
    """A named point where a forward hook can observe an intermediate tensor, or replace it by returning another."""

    @property
    def observed(self) -> bool:
        """Whether any hook is registered: only then is a tensor computed that a fused kernel skips."""
        return any((self._forward_hooks, self._forward_pre_hooks, self._backward_hooks, self._backward_pre_hooks))


class LayerNorm(nn.Module):
    """Normalise the channels of each token to mean 0 and standard deviation 1, then apply a learned gain and bias."""

    def __init__(self, size: int, epsilon: float, bias: bool = True) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None
        self.normalized = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), by the fused kernel unless a hook replaces `normalized`."""
        if self.normalized.observed:
            wide = to_float32(x)
            mean = wide.mean(-1, keepdim=True)
            variance = wide.var(-1, keepdim=True, correction=0)  # biased: divided by D, not by D - 1
            own = (wide - mean) / torch.sqrt(variance + self.epsilon)
            normalized = self.normalized(own)
            if normalized is not own:
                y = normalized * self.weight
                return (y if self.bias is None else y + self.bias).to(x.dtype)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class RMSNorm(nn.Module):
    """Normalise the channels of each token to root mean square 1, then apply a learned gain: no mean, no bias."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))
        self.normalized = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), by the fused kernel unless a hook replaces `normalized`."""
        if self.normalized.observed:
            wide = to_float32(x)
            own = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
            normalized = self.normalized(own)
            if normalized is not own:
                return (normalized * self.weight).to(x.dtype)
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


def to_float32(x: Tensor) -> Tensor:
    """Convert half precision to float32, in which the fused kernels accumulate; float64 stays float64."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def make_norm(config: ModelConfig, size: int) -> LayerNorm | RMSNorm:
    """Build the kind of norm that the settings name, over `size` channels."""
    if config.norm == "rms":
        return RMSNorm(size, config.norm_epsilon)
    return LayerNorm(size, config.norm_epsilon, config.bias)
