"""Rotary positions.

Take two channels of a query as a point in the plane and turn it by an angle that grows with its
position; do the same with the keys. Their dot product then depends only on how far apart they
are. Here, as in Llama, channel i is paired with channel i + K/2, and pair i turns by

    angle(t, i) = t / base^(2i / K)         for i = 0, 1, ..., K/2 - 1

    turning (a, b) by an angle gives (a cos - b sin, a sin + b cos)
"""

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Turn queries or keys x (B, H, T, K), whose tokens have these positions (T,): (B, H, T, K); K is even."""
    size = x.size(-1)
    pairs = torch.arange(0, size, 2, dtype=x.dtype)  # (K/2,): 0, 2, 4, ...
    angles = positions[:, None].to(x.dtype) / base ** (pairs / size)  # (T, K/2)
    cos = angles.cos()
    sin = angles.sin()
    first, second = x.chunk(2, dim=-1)  # (B, H, T, K/2) each
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
