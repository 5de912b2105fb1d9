"""Our few lines against torch's own modules with the same weights: outputs and gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.attention import Attention
from clearhead.model.block import Block, FeedForward, Visibility
from clearhead.model.norm import LayerNorm, RMSNorm
from tiny_models import TINY, shake

CONFIG = replace(TINY, activation="relu")
both_orders = pytest.mark.parametrize("order", ["post", "pre"])


def copy(ours: nn.Module, theirs: Tensor, bias: Tensor | None) -> None:
    ours.load_state_dict({"weight": theirs} if bias is None else {"weight": theirs, "bias": bias})


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    for linear, weight, bias in zip(
        (ours.query, ours.key, ours.value), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        copy(linear, weight, bias)
    copy(ours.out, theirs.out_proj.weight, theirs.out_proj.bias)


def gradients(module: nn.Module) -> list[Tensor]:
    """All gradients of ours or theirs, in one order: attentions, feed-forward, norms as they come; weights, biases."""
    found: list[Any] = []
    for part in module.modules():
        if isinstance(part, nn.MultiheadAttention):
            packed = part.in_proj_weight.grad.chunk(3), part.in_proj_bias.grad.chunk(3)
            found += [*packed[0], *packed[1], part.out_proj.weight.grad, part.out_proj.bias.grad]
        elif isinstance(part, Attention):
            inputs = (part.query, part.key, part.value)
            found += [*(linear.weight.grad for linear in inputs), *(linear.bias.grad for linear in inputs)]
            found += [part.out.weight.grad, part.out.bias.grad]
    inner = ("linear1", "linear2", "up", "down")
    found += [p.grad for name, p in module.named_parameters() if any(word in name.split(".") for word in inner)]
    norms = [part for part in module.modules() if isinstance(part, LayerNorm | nn.LayerNorm)]
    found += [p.grad for norm in norms for p in (norm.weight, norm.bias)]
    assert sum(gradient.numel() for gradient in found) == sum(p.numel() for p in module.parameters())
    return found


def assert_all_close(ours: Iterable[Tensor], theirs: Iterable[Tensor]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["self", "cross", "causal", "padded"])
def test_attention_is_that_of_torch(kind: str) -> None:
    theirs = nn.MultiheadAttention(16, 4, batch_first=True, dtype=torch.float64)
    ours = Attention(CONFIG).double()
    shake(theirs)
    copy_attention(ours, theirs)
    x = torch.randn(3, 5, 16, dtype=torch.float64)
    context = torch.randn(3, 7, 16, dtype=torch.float64) if kind == "cross" else x
    mask = torch.ones(3, 1, 5, context.size(1), dtype=torch.bool)
    if kind == "causal":
        mask = mask.tril()
    if kind == "padded":
        mask[0, ..., 3:] = False
    blocked = (~mask).expand(3, 4, -1, -1).flatten(0, 1)  # torch: True means "may not look", one row for each head
    expected, weights = theirs(x, context, context, attn_mask=blocked, average_attn_weights=False)
    shown: list[Tensor] = []
    handle = ours.weights.register_forward_hook(lambda _m, _i, output: shown.append(output))
    ours(x, context if kind == "cross" else None, mask)
    handle.remove()
    result = ours(x, context if kind == "cross" else None, mask)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert_all_close([result, shown[0]], [expected, weights])
    assert_all_close(gradients(ours), gradients(theirs))


@both_orders
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_block_is_that_of_torch(order: str, activation: str) -> None:
    theirs = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, activation, batch_first=True, norm_first=order == "pre", dtype=torch.float64
    )
    shake(theirs)
    ours = Block(replace(CONFIG, norm_order=order, activation=activation)).double()
    copy_attention(ours.attention, theirs.self_attn)
    copy(ours.attention_add_norm.norm, theirs.norm1.weight, theirs.norm1.bias)
    copy(ours.feed_forward.up, theirs.linear1.weight, theirs.linear1.bias)
    copy(ours.feed_forward.down, theirs.linear2.weight, theirs.linear2.bias)
    copy(ours.feed_forward_add_norm.norm, theirs.norm2.weight, theirs.norm2.bias)
    x = torch.randn(3, 5, 16, dtype=torch.float64).requires_grad_()
    y = x.detach().clone().requires_grad_()
    real = torch.rand(3, 5) < 0.8
    real[:, 0] = True
    result = ours(x, Visibility(real[:, None, None]))
    expected = theirs(y, src_key_padding_mask=~real)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert_all_close([result, x.grad, *gradients(ours)], [expected, y.grad, *gradients(theirs)])


@both_orders
def test_a_decoder_block_is_that_of_torch(order: str) -> None:
    theirs = nn.TransformerDecoderLayer(
        16, 4, 24, 0.0, batch_first=True, norm_first=order == "pre", dtype=torch.float64
    )
    shake(theirs)
    ours = Block(replace(CONFIG, norm_order=order), cross=True).double()
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy(ours.feed_forward.up, theirs.linear1.weight, theirs.linear1.bias)
    copy(ours.feed_forward.down, theirs.linear2.weight, theirs.linear2.bias)
    norms = (ours.attention_add_norm, ours.cross_attention_add_norm, ours.feed_forward_add_norm)
    for mine, norm in zip(norms, (theirs.norm1, theirs.norm2, theirs.norm3), strict=True):
        copy(mine.norm, norm.weight, norm.bias)
    x, memory = torch.randn(3, 5, 16, dtype=torch.float64), torch.randn(3, 7, 16, dtype=torch.float64)
    ours_in = [x.clone().requires_grad_(), memory.clone().requires_grad_()]
    theirs_in = [x.clone().requires_grad_(), memory.clone().requires_grad_()]
    real = torch.rand(3, 7) < 0.7
    real[:, 0] = True
    result = ours(ours_in[0], Visibility(causal=True, memory=ours_in[1], memory_mask=real[:, None, None]))
    future = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    expected = theirs(*theirs_in, tgt_mask=future, memory_key_padding_mask=~real, tgt_is_causal=True)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert_all_close(
        [result, *(t.grad for t in ours_in), *gradients(ours)],
        [expected, *(t.grad for t in theirs_in), *gradients(theirs)],
    )


@pytest.mark.parametrize("spelled_out", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_is_that_of_torch(spelled_out: bool, bias: bool) -> None:
    ours = LayerNorm(16, 1e-5, bias).double()
    theirs = nn.LayerNorm(16, 1e-5, bias=bias, dtype=torch.float64)
    compare_norms(ours, theirs, spelled_out)


@pytest.mark.parametrize("spelled_out", [False, True])
def test_rms_norm_is_that_of_torch(spelled_out: bool) -> None:
    compare_norms(RMSNorm(16, 1e-6).double(), nn.RMSNorm(16, 1e-6, dtype=torch.float64), spelled_out)


def compare_norms(ours: LayerNorm | RMSNorm, theirs: nn.Module, spelled_out: bool) -> None:
    shake(theirs)
    ours.load_state_dict(theirs.state_dict())
    shown: list[Tensor] = []
    if spelled_out:
        ours.normalized.register_forward_hook(lambda _m, _i, output: shown.append(output))
    x = (3 * torch.randn(2, 5, 16, dtype=torch.float64) + 1).requires_grad_()
    y = x.detach().clone().requires_grad_()
    result, expected = ours(x), theirs(y)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert bool(shown) == spelled_out
    assert_all_close([result, x.grad], [expected, y.grad])
    assert_all_close(*([p.grad for p in norm.parameters()] for norm in (ours, theirs)))


def test_swiglu_is_its_formula() -> None:
    block = FeedForward(replace(CONFIG, activation="swiglu", bias=False)).double()
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    assert block.gate is not None
    gate, up, down = block.gate.weight, block.up.weight, block.down.weight
    torch.testing.assert_close(block(x), (F.silu(x @ gate.T) * (x @ up.T)) @ down.T)
