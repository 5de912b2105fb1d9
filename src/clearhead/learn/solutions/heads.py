"""Heads: split the channels, merge them again.

Eight heads of 64 channels compute no more than one head of 512, but each can attend to something
else. The channels of a token are cut into H neighbouring parts: head 0 has channels 0 to K - 1,
head 1 the next K, and so on. Attention then treats heads as it treats the sentences of a batch:
all at once, apart from each other.
"""

import torch
from torch import Tensor


def split(x: Tensor, heads: int) -> Tensor:
    """Split the channels of each token into heads: (B, T, D) -> (B, H, T, K), where K = D / H."""
    batch, length, size = x.shape
    return x.view(batch, length, heads, size // heads).transpose(1, 2)


def merge(x: Tensor) -> Tensor:
    """Put the heads side by side again, the inverse of split: (B, H, T, K) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(2)
