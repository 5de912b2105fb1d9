"""Causal and padding masks.

A decoder predicts the next token, so no token may see a later one. And the shorter sentences of a
batch are padded: no token may attend to padding. A mask is boolean here: True where a query (a
row) may attend to a key (a column).
"""

import torch
from torch import Tensor


def causal_mask(length: int) -> Tensor:
    """Return which token may attend to which in a decoder: (T, T), boolean.

    A token may attend to itself and to all earlier ones.
    """
    return torch.ones(length, length, dtype=torch.bool).tril()


def padded_causal_mask(real: Tensor) -> Tensor:
    """Return the same for sentences with padding: (B, 1, T, T), boolean.

    real: (B, T), boolean, True at real tokens, False at padding.
    No token may attend to padding. (What padding itself attends to does not matter: only keys are masked.)
    The second axis is for the heads, which all have the same mask.
    """
    return causal_mask(real.size(1)) & real[:, None, None, :]
