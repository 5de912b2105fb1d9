"""Attention over short sequences, forwards and backwards: one program computes a whole head.

Flash attention is made for thousands of keys: it works in tiles of 128, of which a sentence of 30 tokens fills a
quarter. Here queries, keys and values of a head fit into one tile, so nothing is computed twice, and only the result
is written.

Shapes: B batch, T queries, S keys, H heads, G key/value heads, K head size.
Masks are boolean, True where a query may attend to a key.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_SHORT_TOKENS = 64  # queries, and keys
SMALLEST_TILE = 32  # a tile of 16 would save little time, and each size has to be compiled
VARYING = ["T", "S", "mb"]  # they differ between batches: no kernel is compiled for single values of them


@triton.jit
def attention_weights(
    q, k, MASK, b, mask_row, mask_query, mask_key, scale, T, S,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    query = tl.arange(0, TILE)
    key = tl.arange(0, TILE)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    allowed = (query[:, None] < T) & (key[None, :] < S)
    if CAUSAL:
        allowed = allowed & (key[None, :] <= query[:, None])
    if MASKED:
        place = MASK + b * mask_row + query[:, None] * mask_query + key[None, :] * mask_key
        allowed = allowed & (tl.load(place, mask=allowed, other=0) != 0)
    scores = tl.where(allowed, scores, -1e30)
    weights = tl.where(allowed, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    total = tl.sum(weights, 1)
    return weights / tl.where(total == 0.0, 1.0, total)[:, None]  # a query without any visible key gets weights of 0


@triton.jit
def load_tile(X, row_stride, head_stride, token_stride, b, h, length, TOKENS: tl.constexpr, K: tl.constexpr):
    token = tl.arange(0, TOKENS)
    places = X + b * row_stride + h * head_stride + token[:, None] * token_stride + tl.arange(0, K)[None, :]
    return tl.load(places, mask=token[:, None] < length, other=0.0)


@triton.jit
def store_tile(X, x, row_stride, head_stride, token_stride, b, h, length, TOKENS: tl.constexpr, K: tl.constexpr):
    token = tl.arange(0, TOKENS)
    places = X + b * row_stride + h * head_stride + token[:, None] * token_stride + tl.arange(0, K)[None, :]
    tl.store(places, x.to(X.dtype.element_ty), mask=token[:, None] < length)


@triton.jit(do_not_specialize=VARYING)
def forward_kernel(
    Q, KEY, V, OUT, MASK, qb, qh, qt, kb, kh, kt, vb, vh, vt, ob, oh, ot, mb, mt, ms, scale, T, S,
    H: tl.constexpr, G: tl.constexpr, K: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64) // H
    h = tl.program_id(0) % H
    g = h // (H // G)
    q = load_tile(Q, qb, qh, qt, b, h, T, TILE, K)
    k = load_tile(KEY, kb, kh, kt, b, g, S, TILE, K)
    v = load_tile(V, vb, vh, vt, b, g, S, TILE, K)
    weights = attention_weights(q, k, MASK, b, mb, mt, ms, scale, T, S, CAUSAL, MASKED, TILE)
    out = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    store_tile(OUT, out, ob, oh, ot, b, h, T, TILE, K)


@triton.jit(do_not_specialize=VARYING)
def backward_kernel(
    Q, KEY, V, DOUT, MASK, DQ, DK, DV, qb, qh, qt, kb, kh, kt, vb, vh, vt, ob, oh, ot,
    dqb, dqh, dqt, dkb, dkh, dkt, mb, mt, ms, scale, T, S,
    H: tl.constexpr, G: tl.constexpr, K: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64) // G
    g = tl.program_id(0) % G
    k = load_tile(KEY, kb, kh, kt, b, g, S, TILE, K)
    v = load_tile(V, vb, vh, vt, b, g, S, TILE, K)
    dk = tl.zeros([TILE, K], dtype=tl.float32)
    dv = tl.zeros([TILE, K], dtype=tl.float32)
    for i in range(H // G):  # all query heads that share these keys and values
        h = g * (H // G) + i
        q = load_tile(Q, qb, qh, qt, b, h, T, TILE, K)
        dout = load_tile(DOUT, ob, oh, ot, b, h, T, TILE, K)
        weights = attention_weights(q, k, MASK, b, mb, mt, ms, scale, T, S, CAUSAL, MASKED, TILE)
        dv += tl.dot(tl.trans(weights.to(v.dtype)), dout, input_precision="ieee")
        dweights = tl.dot(dout, tl.trans(v), input_precision="ieee")
        dscores = weights * (dweights - tl.sum(weights * dweights, 1)[:, None]) * scale  # through the softmax
        dk += tl.dot(tl.trans(dscores.to(q.dtype)), q, input_precision="ieee")
        dq = tl.dot(dscores.to(k.dtype), k, input_precision="ieee")
        store_tile(DQ, dq, dqb, dqh, dqt, b, h, T, TILE, K)
    store_tile(DK, dk, dkb, dkh, dkt, b, g, S, TILE, K)
    store_tile(DV, dv, dkb, dkh, dkt, b, g, S, TILE, K)


def token_major(x: Tensor) -> Tensor:
    """An empty (B, H, T, K) tensor whose memory is (B, T, H, K): joining the heads is then free."""
    B, H, T, K = x.shape
    return x.new_empty(B, T, H, K).transpose(1, 2)


def mask_arguments(mask: Tensor | None, queries: Tensor, keys: Tensor) -> tuple[Tensor, int, int, int]:
    """The mask expanded to (B, 1, T, S), with its strides; the queries in its place if there is none."""
    if mask is None:
        return queries, 0, 0, 0
    mask = mask.expand(queries.size(0), 1, queries.size(2), keys.size(2))
    return mask, mask.stride(0), mask.stride(2), mask.stride(3)


def tile_size(queries: int, keys: int) -> int:
    """The size of the tile that holds these numbers of queries and keys: a power of two."""
    return max(SMALLEST_TILE, triton.next_power_of_2(max(queries, keys)))


@torch.library.custom_op("clearhead::short_attention", mutates_args=())
def short_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """softmax(Q Kᵀ / sqrt(K)) V for at most MAX_SHORT_TOKENS tokens: (B, H, T, K), (B, G, S, K) -> (B, H, T, K)."""
    B, H, T, K = queries.shape
    G, S = keys.shape[1:3]
    out = token_major(queries)
    place, *strides = mask_arguments(mask, queries, keys)
    forward_kernel[(B * H,)](
        queries, keys, values, out, place, *queries.stride()[:3], *keys.stride()[:3], *values.stride()[:3],
        *out.stride()[:3], *strides, 1 / math.sqrt(K), T, S, H, G, K, causal, mask is not None,
        tile_size(T, S), num_warps=4,
    )  # fmt: skip
    return out


@short_attention.register_fake
def _(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    return token_major(queries)


@torch.library.custom_op("clearhead::short_attention_backward", mutates_args=())
def short_attention_backward(
    gradient: Tensor, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values; the weights are computed again, which costs less than reading them."""
    B, H, T, K = queries.shape
    G, S = keys.shape[1:3]
    found = token_major(queries), token_major(keys), token_major(values)
    place, *strides = mask_arguments(mask, queries, keys)
    gradient = gradient if gradient.stride(-1) == 1 else gradient.contiguous()
    backward_kernel[(B * G,)](
        queries, keys, values, gradient, place, *found, *queries.stride()[:3], *keys.stride()[:3],
        *values.stride()[:3], *gradient.stride()[:3], *found[0].stride()[:3], *found[1].stride()[:3], *strides,
        1 / math.sqrt(K), T, S, H, G, K, causal, mask is not None, tile_size(T, S), num_warps=4,
    )  # fmt: skip
    return found


@short_attention_backward.register_fake
def _(
    gradient: Tensor, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return token_major(queries), token_major(keys), token_major(values)


def remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the backward pass needs."""
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors)


def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of `short_attention`."""
    return *short_attention_backward(gradient, *ctx.saved_tensors, ctx.causal), None, None


short_attention.register_autograd(backward, setup_context=remember)
