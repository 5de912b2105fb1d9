"""The block: residual connections and norms.

Each sublayer f adds its output to its input, so that a deep model starts as something close to
the identity and gradients reach the first layer. The paper normalises after the sum (post-norm);
most models since GPT-2 normalise the input of the sublayer and leave the sum alone (pre-norm),
which trains without a long warm-up.

    post-norm: norm(x + f(x))          pre-norm: x + f(norm(x))
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Self-attention, then feed-forward; attention and feed_forward are functions (B, T, D) -> (B, T, D)."""

    def __init__(
        self,
        d_model: int,
        attention: Callable[[Tensor], Tensor],
        feed_forward: Callable[[Tensor], Tensor],
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D): post-norm, or pre-norm if norm_first is True."""
        if self.norm_first:
            x = x + self.attention(self.attention_norm(x))
            return x + self.feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.attention(x))
        return self.feed_forward_norm(x + self.feed_forward(x))
