"""Sinusoidal positions.

Attention alone does not know the order of its inputs. The paper adds a vector to each token's
embedding that depends on its position: sines and cosines, slower and slower from the first
channels to the last.

    angle(t, i)    = t / 10000^(2i / D)
    channel 2i     = sin(angle(t, i))
    channel 2i + 1 = cos(angle(t, i))

for positions t = 0, 1, 2, ... and pairs of channels i = 0, 1, ..., D/2 - 1.
"""

import torch
from torch import Tensor


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return the vectors of positions 0 to length - 1: (T, D), in float32; D is even."""
    positions = torch.arange(length, dtype=torch.float32)[:, None]  # (T, 1)
    pairs = torch.arange(0, d_model, 2, dtype=torch.float32)  # (D/2,): 0, 2, 4, ...
    angles = positions / 10_000 ** (pairs / d_model)  # (T, D/2)
    result = torch.empty(length, d_model)
    result[:, 0::2] = angles.sin()
    result[:, 1::2] = angles.cos()
    return result
