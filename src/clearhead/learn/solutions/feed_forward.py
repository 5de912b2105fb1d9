"""The feed-forward layer.

Attention moves information between tokens, and is linear in the values. What a token does with
what it has gathered is computed here: a wide linear layer, a nonlinearity, and a linear layer
back. All positions share the same two matrices.

    W₂ max(0, W₁ x + b₁) + b₂
"""

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them, applied to each token alone."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, F) -> (B, T, D)."""
        return self.down(torch.relu(self.up(x)))
