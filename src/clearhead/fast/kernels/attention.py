"""Attention on a GPU by the fastest kernel for its shape, behind the signature of PyTorch's own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.fast.kernels import usable
from clearhead.model.attention import Attention


def use_fast_attention(model: nn.Module, compiled: bool) -> None:
    """Let all attention layers of a model on a GPU compute with our kernels; a compiled rotation needs none."""
    if usable(next(model.parameters())):
        from clearhead.fast.kernels.rotary import fast_rotate

        for module in model.modules():
            if isinstance(module, Attention):
                module.kernel = fast_attention
                if fits_tile(module.head_size) and not compiled:
                    module.rotate = fast_rotate


def preferred_kernels(device: torch.device) -> AbstractContextManager[None]:
    """Inside, PyTorch takes cuDNN's attention where it can: on a Hopper GPU the fastest for long sequences."""
    if device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
        return nullcontext()
    order = ["CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]
    return sdpa_kernel([getattr(SDPBackend, name) for name in order], set_priority=True)


def fast_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    enable_gqa: bool,
) -> Tensor:
    """The same as `F.scaled_dot_product_attention`: (B, H, T, K), (B, G, S, K) -> (B, H, T, K)."""
    from clearhead.fast.kernels.short_attention import LONGEST, short_attention
    from clearhead.fast.kernels.token_attention import token_attention

    short = max(queries.size(2), keys.size(2)) <= LONGEST and fits_tile(queries.size(3))
    if short and not dropout:
        result: Tensor = short_attention(queries, keys, values, mask, causal)
        return result
    if queries.size(2) == 1 and mask is not None and not queries.requires_grad and fits_tile(queries.size(3)):
        return token_attention(queries, keys, values, mask)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal, enable_gqa=enable_gqa)


def fits_tile(head_size: int) -> bool:
    """Whether kernels can read a head at once: powers of two that matrix units take."""
    return head_size in (16, 32, 64, 128)
