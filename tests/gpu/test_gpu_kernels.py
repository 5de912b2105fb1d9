"""Our Triton kernels: each computes what the plain PyTorch code does.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.config import ModelConfig
from clearhead.decode.beam import Beams
from clearhead.decode.search import TokenSearch, most_likely
from clearhead.decode.steps import StopCriteria
from clearhead.fast.gpu.search import read
from clearhead.fast.kernels.attention import fast_attention
from clearhead.model.attention import rotate
from clearhead.model.norm import make_norm
from clearhead.model.stack import RotaryPosition
from clearhead.train.loss import paired_cross_entropy
from on_gpu import needs_gpu
from tiny_models import encoder_decoder, random_ids

pytestmark = needs_gpu


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (30, 17), (64, 64), (1, 40)])
@pytest.mark.parametrize("kind", ["causal", "padding", "full"])
def test_short_attention_is_attention(heads: int, kv_heads: int, queries: int, keys: int, kind: str) -> None:
    if kind == "causal" and queries != keys:
        pytest.skip("a causal mask is for equal lengths")
    q = torch.randn(3, queries, heads, 32, device="cuda").transpose(1, 2).requires_grad_()
    k, v = (torch.randn(3, keys, kv_heads, 32, device="cuda").transpose(1, 2).requires_grad_() for _ in range(2))
    mask = (torch.rand(3, 1, 1, keys, device="cuda") < 0.7).index_fill_(3, torch.tensor(0, device="cuda"), True)
    arguments = (mask if kind == "padding" else None, 0.0, kind == "causal")
    found = fast_attention(q, k, v, *arguments, enable_gqa=heads != kv_heads)
    with sdpa_kernel(SDPBackend.MATH):
        wanted = F.scaled_dot_product_attention(q, k, v, *arguments, enable_gqa=heads != kv_heads)
    gradient = torch.randn_like(wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    pairs = zip(
        torch.autograd.grad(found, (q, k, v), gradient), torch.autograd.grad(wanted, (q, k, v), gradient), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("rows", "slots"), [(1, 300), (2, 8192), (70, 130)])
@pytest.mark.parametrize("kv_heads", [4, 1])
@torch.inference_mode()
def test_token_attention_is_attention(rows: int, slots: int, kv_heads: int) -> None:
    q = torch.randn(rows, 4, 1, 64, device="cuda")
    k, v = torch.randn(2, rows, kv_heads, slots, 64, device="cuda")
    mask = torch.rand(rows, 1, 1, slots, device="cuda") < 0.5
    with sdpa_kernel(SDPBackend.MATH):
        wanted = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=kv_heads != 4)
    torch.testing.assert_close(fast_attention(q, k, v, mask, 0.0, False, kv_heads != 4), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 400), (5, 32_000), (300, 5_001)])
def test_best_candidates_are_those_of_log_softmax(rows: int, vocabulary: int) -> None:
    from clearhead.fast.kernels.beam import best_candidates

    logits = torch.randn(rows, vocabulary, device="cuda")
    logits[:, -1] += 9  # the largest is in the last block, which is not whole
    values, tokens = best_candidates(logits, 5)
    expected = logits.log_softmax(-1).topk(5)
    torch.testing.assert_close(values, expected.values)
    assert torch.equal(tokens, expected.indices)


@pytest.mark.parametrize(("width", "end", "nbest"), [(4, (3,), 1), (3, (3, 7), 2), (1, (), 1)])
@torch.inference_mode()
def test_a_step_of_a_beam_in_few_kernels_is_the_step(width: int, end: tuple[int, ...], nbest: int) -> None:
    ending = StopCriteria(end, 0, torch.tensor([5, 9, 30]))
    plain = Beams.begin(torch.zeros(3, 700), ending, width, 0.6, nbest)
    fast_one = deepcopy(plain)
    for field in fields(plain):
        value = getattr(plain, field.name)
        if isinstance(value, torch.Tensor):
            setattr(fast_one, field.name, value.cuda())
    for _ in range(12):
        logits = 2 * torch.randn(3 * width, 700)
        logits[:, list(end)] += 4
        plain.read(logits)
        read(fast_one, logits.cuda())
        known = plain.scores > -torch.inf
        going_on = plain.log_probabilities > -torch.inf
        assert torch.equal(plain.done, fast_one.done.cpu())
        for field_name, some in (("complete", known), ("lengths", known), ("ids", going_on), ("parents", going_on)):
            assert torch.equal(getattr(plain, field_name)[some], getattr(fast_one, field_name).cpu()[some])
        for field_name in ("scores", "log_probabilities", "length"):
            torch.testing.assert_close(
                getattr(plain, field_name), getattr(fast_one, field_name).cpu(), rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("end", [(3,), ()])
@torch.inference_mode()
def test_a_step_of_greedy_search_in_two_kernels_is_the_step(end: tuple[int, ...]) -> None:
    ending = StopCriteria(end, 0, torch.tensor([5, 9, 2]))
    plain = TokenSearch.begin(torch.zeros(3, 9000), ending, most_likely)
    fast_one = TokenSearch.begin(torch.zeros(3, 9000, device="cuda"), ending, most_likely)
    for step in range(7):
        logits = torch.randn(3, 9000)
        logits[1, 3] += 30 if step == 4 else 0
        plain.read(logits)
        read(fast_one, logits.cuda())
        for one, other in zip(plain.tensors(), fast_one.tensors(), strict=True):
            torch.testing.assert_close(one, other.cpu())


@pytest.mark.parametrize("own_positions", [True, False])
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_a_rotation_in_one_kernel_is_the_rotation(heads: int, own_positions: bool) -> None:
    from clearhead.fast.kernels.rotary import fast_rotate

    x = torch.randn(2, 7, heads, 32, device="cuda").transpose(1, 2).requires_grad_()
    positions = torch.randint(50, (2, 7) if own_positions else (7,), device="cuda")
    rotation = RotaryPosition(ModelConfig(d_model=heads * 32, heads=heads))(positions, torch.float32)
    found = fast_rotate(x, rotation)
    wanted = rotate(x, rotation)
    torch.testing.assert_close(found, wanted)
    gradient = torch.randn_like(wanted)
    torch.testing.assert_close(torch.autograd.grad(found, x, gradient), torch.autograd.grad(wanted, x, gradient))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tokens", [3, 1000, 5000])
def test_a_linear_layer_with_cast_weights_is_that_of_autocast(tokens: int, bias: bool) -> None:
    from clearhead.fast.train.half_linear import use_half_linears

    plain = torch.nn.Linear(96, 200, bias).cuda()
    layer = deepcopy(plain)
    refresh = use_half_linears(layer)
    for linear in (plain, layer):
        linear.weight.data.normal_(generator=torch.Generator("cuda").manual_seed(1))
    refresh()
    x = torch.randn(2, tokens, 96, device="cuda", requires_grad=True)
    gradient = torch.randn(2, tokens, 200, device="cuda", dtype=torch.bfloat16)
    found: list[torch.Tensor] = []
    wanted: list[torch.Tensor] = []
    for linear, results in ((layer, found), (plain, wanted)):
        with torch.autocast("cuda", torch.bfloat16):
            y = linear(x)
        results += [y, *torch.autograd.grad(y, [x, *linear.parameters()], gradient)]
    assert torch.equal(found[0], wanted[0])
    for one, other in zip(found[1:], wanted[1:], strict=True):
        assert one.dtype == other.dtype
        assert (one - other).norm() < 0.01 * other.norm()


@pytest.mark.parametrize("options", [{}, {"activation": "swiglu", "bias": False, "kv_heads": 1}], ids=str)
def test_layers_that_share_a_product_are_those_layers(options: dict[str, Any]) -> None:
    """Queries, keys and values of a block: the same logits and gradients, but for rounding; norms in bfloat16, too."""
    from clearhead.fast.train.half_linear import use_half_linears
    from clearhead.fast.train.half_norm import use_half_norms

    plain = encoder_decoder(dtype=torch.float32, d_model=64, position="rotary", norm_order="pre", **options).cuda()
    joined = deepcopy(plain)
    use_half_norms(joined)
    use_half_linears(joined)()
    source, target = random_ids(4, 9).cuda(), random_ids(4, 7).cuda()
    results = []
    for model in (plain.train(), joined.train()):
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(source, target)
        names = [name for name, _ in model.named_parameters() if not name.endswith("key.bias")]  # its gradient is 0
        parameters = [model.get_parameter(name) for name in names]
        results.append([logits, *torch.autograd.grad(logits.float().square().mean(), parameters)])
    for one, other in zip(*results, strict=True):
        assert (one - other).norm() < 0.05 * one.norm()


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(("tokens", "channels"), [(1, 64), (777, 192), (9000, 512)])
def test_a_norm_in_two_kernels_is_the_norm(tokens: int, channels: int, kind: str) -> None:
    from clearhead.fast.train.half_norm import HALF_NORMS

    config = ModelConfig(norm=kind)
    plain = make_norm(config, channels).cuda()
    for parameter in plain.parameters():
        parameter.data.normal_()
    half = deepcopy(plain)
    half.__class__ = HALF_NORMS[type(plain)]
    x = (3 * torch.randn(1, tokens, channels, device="cuda") + 1).requires_grad_()
    gradient = torch.randn(1, tokens, channels, device="cuda").bfloat16()
    wanted = plain(x)
    found = half(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), wanted, rtol=1e-2, atol=1e-2)
    parameters = [list(norm.parameters()) for norm in (half, plain)]
    pairs = zip(
        torch.autograd.grad(found, [x, *parameters[0]], gradient),
        torch.autograd.grad(wanted, [x, *parameters[1]], gradient.float()),
        strict=True,
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
    assert torch.equal(half.eval()(x), plain(x)), "without gradients it is the plain norm"


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocab", [500, 32_001])
def test_a_loss_without_whole_logits_is_the_loss(monkeypatch: pytest.MonkeyPatch, vocab: int, smoothing: float) -> None:
    from clearhead.fast.kernels import cross_entropy

    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", 2**22)
    hidden = torch.randn(300, 64, device="cuda", requires_grad=True)
    weight = torch.randn(vocab, 64, device="cuda", requires_grad=True)
    targets = torch.randint(vocab, (300,), device="cuda").index_fill_(0, torch.tensor([3, 9], device="cuda"), -100)
    found = cross_entropy.linear_cross_entropy(hidden, weight, targets, smoothing)
    logits = F.linear(hidden, weight)
    wanted = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found, wanted)
    pairs = zip(
        torch.autograd.grad(found, (hidden, weight)), torch.autograd.grad(wanted, (hidden, weight)), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocab", [500, 32_001])
def test_r_drop_without_whole_logits_is_its_formula(
    monkeypatch: pytest.MonkeyPatch, vocab: int, smoothing: float
) -> None:
    from clearhead.fast.kernels import cross_entropy

    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", 2**22)
    hidden = torch.randn(600, 64, device="cuda", requires_grad=True)
    weight = (torch.randn(vocab, 64, device="cuda") / 8).requires_grad_()
    targets = torch.randint(vocab, (300,), device="cuda").index_fill_(0, torch.tensor([3, 9], device="cuda"), -100)
    found = cross_entropy.linear_cross_entropy(hidden, weight, targets, smoothing, consistency=5.0)
    wanted = paired_cross_entropy(F.linear(hidden, weight), targets, smoothing, 5.0)
    torch.testing.assert_close(found, wanted)
    pairs = zip(
        torch.autograd.grad(found, (hidden, weight)), torch.autograd.grad(wanted, (hidden, weight)), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("consistency", [0.0, 5.0])
def test_a_loss_of_no_targets_is_zero(consistency: float) -> None:
    from clearhead.fast.kernels.cross_entropy import linear_cross_entropy

    hidden = torch.randn(0, 64, device="cuda", requires_grad=True)
    weight = torch.randn(500, 64, device="cuda", requires_grad=True)
    loss = linear_cross_entropy(hidden, weight, torch.zeros(0, dtype=torch.long, device="cuda"), 0.1, consistency)
    loss.backward()
    assert loss == 0
    assert weight.grad is not None
    assert not weight.grad.any()
