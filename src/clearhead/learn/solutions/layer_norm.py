"""LayerNorm.

Every token is normalised alone, over its own channels: neither the other tokens nor the other
sentences matter. A learned weight and bias then give each channel the scale and the offset that
training finds useful.

    (x - mean) / sqrt(variance + epsilon) · weight + bias

The variance is the mean of the squared differences, divided by D, not by D - 1.
"""

import torch
from torch import Tensor


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Normalise the channels of each token: (B, T, D) -> (B, T, D); weight and bias: (D,)."""
    mean = x.mean(dim=-1, keepdim=True)  # (B, T, 1)
    variance = x.var(dim=-1, keepdim=True, correction=0)  # (B, T, 1)
    return (x - mean) / torch.sqrt(variance + epsilon) * weight + bias
