"""Scaled dot-product attention.

Each token asks a question (its query). Every token offers an answer (its value) under a label
(its key). A query takes the mean of the values, weighted by how well their keys match it:

    softmax(Q Kᵀ / sqrt(d_k)) V        d_k: the number of channels of a key

The division keeps the scores small: a softmax of large scores puts nearly all weight on one key,
and hardly learns.
"""

import math

import torch
from torch import Tensor


def attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the weighted mean of the values for each query: (B, H, T, K).

    queries: (B, H, T, K)
    keys, values: (B, H, S, K)
    mask: boolean, broadcasts to (B, H, T, S); True where a query may attend to a key. None: it may attend to all.

    The weights of a query sum to 1 over the keys that it may attend to. If there are none, its result is 0, not NaN.
    """
    scores = queries @ keys.mT / math.sqrt(queries.size(-1))  # (B, H, T, K) x (B, H, K, S) -> (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
    return weights @ values  # (B, H, T, S) x (B, H, S, K) -> (B, H, T, K)
