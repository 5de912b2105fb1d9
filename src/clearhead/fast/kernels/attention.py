"""Attention on a GPU by the fastest kernel for its shape, behind the signature of PyTorch's own."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def fast_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    enable_gqa: bool,
) -> Tensor:
    """Equals `F.scaled_dot_product_attention`: (B, H, T, K), (B, G, S, K) -> (B, H, T, K)."""
    from clearhead.fast.kernels.short_attention import MAX_SHORT_TOKENS, short_attention
    from clearhead.fast.kernels.token_attention import token_attention

    short = max(queries.size(2), keys.size(2)) <= MAX_SHORT_TOKENS and fits_tile(queries.size(3))
    if short and not dropout:
        result: Tensor = short_attention(queries, keys, values, mask, causal)
        return result
    if queries.size(2) == 1 and mask is not None and not queries.requires_grad and fits_tile(queries.size(3)):
        return token_attention(queries, keys, values, mask)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal, enable_gqa=enable_gqa)


def fits_tile(head_size: int) -> bool:
    """Whether kernels can read a head at once: powers of two that matrix units take."""
    return head_size in (16, 32, 64, 128)
