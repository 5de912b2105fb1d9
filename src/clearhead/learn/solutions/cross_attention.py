"""Cross-attention.

The same formula as self-attention, with two inputs. Queries come from the decoder: what does this
target token need to know? Keys and values come from the encoder's output, the memory: what do the
source tokens offer? There is no causal mask here: the whole source is known. But padding of the
source must not be attended to.
"""

import math

import torch
from torch import Tensor, nn


class CrossAttention(nn.Module):
    """Multi-head attention from target tokens to source tokens."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_size = d_model // heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def split(self, x: Tensor) -> Tensor:
        """Split the channels into heads: (B, T, D) -> (B, H, T, K)."""
        return x.view(x.size(0), x.size(1), self.heads, self.head_size).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor, memory_real: Tensor) -> Tensor:
        """Return what each target token reads from the source: (B, T, D).

        x: (B, T, D), the target tokens
        memory: (B, S, D), the encoder's output
        memory_real: (B, S), boolean, False at padding
        """
        queries = self.split(self.query(x))  # (B, H, T, K)
        keys = self.split(self.key(memory))  # (B, H, S, K)
        values = self.split(self.value(memory))  # (B, H, S, K)
        scores = queries @ keys.mT / math.sqrt(self.head_size)  # (B, H, T, S)
        scores = scores.masked_fill(~memory_real[:, None, None, :], -math.inf)
        weights = scores.softmax(dim=-1)
        mixed = weights @ values  # (B, H, T, K)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, T, D)
