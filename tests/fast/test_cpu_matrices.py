"""Matrices for decoding: in float32 the same numbers, whatever becomes of them; in fewer bits, near to them."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from clearhead.config import UserError, Weights
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import store_matrices
from clearhead.fast.cpu import matrices as packed
from clearhead.fast.cpu.matrices import (
    Float32Product,
    PackedLinear,
    ReorderedLinear,
    float16_product,
    has_bfloat16,
    int8_product,
    pack,
)
from tiny_models import decoder_only, encoder_decoder, encoder_only, random_ids

needs_bfloat16 = pytest.mark.skipif(not has_bfloat16(), reason="this processor has no units for bfloat16")
FEWER = ["float16", pytest.param("bfloat16", marks=needs_bfloat16), "int8"]


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MIN_REORDERED_WEIGHTS", 0)


@pytest.mark.parametrize("bias", [True, False])
def test_a_matrix_keeps_its_numbers_to_half_a_step(bias: bool) -> None:
    """A row that is all 0, and one that is a thousand times larger, harm no other."""
    linear = nn.Linear(32, 8, bias)
    with torch.no_grad():
        linear.weight[2] = 0
        linear.weight[3] *= 1000
    steps = linear.weight.abs().amax(1) / 127
    eye = torch.eye(32)  # each input shows one column of the matrix, with no rounding of its own
    zero = 0 if linear.bias is None else linear.bias
    error = (int8_product([linear])(eye) - zero - linear.weight.T).abs()
    assert (error <= 0.5 * steps + 1e-2 * steps.clamp(max=1)).all()


@pytest.mark.parametrize("bias", [True, False])
def test_half_precision_rounds_each_number_once_and_sums_in_float32(bias: bool) -> None:
    linear, x = nn.Linear(300, 8, bias), torch.randn(2, 5, 300)
    rounded = nn.functional.linear(x, linear.weight.half().float(), linear.bias)
    torch.testing.assert_close(float16_product([linear])(x), rounded, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 32), (7, 32), (2, 5, 32), (0, 32)])
@torch.no_grad()
def test_matrices_in_one_are_the_matrices_one_below_the_other(shape: tuple[int, ...], bias: bool) -> None:
    linears, x = [nn.Linear(32, size, bias) for size in (48, 16, 5)], torch.randn(shape)
    expected = torch.cat([linear(x) for linear in linears], dim=-1)
    torch.testing.assert_close(Float32Product(linears)(x), expected)
    torch.testing.assert_close(float16_product(linears)(x), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("form", "nearness"), [("int8", 0.1), ("float16", 1e-3), pytest.param("bfloat16", 0.02, marks=needs_bfloat16)]
)
@torch.inference_mode()
def test_a_smaller_model_says_nearly_the_same(form: Weights, nearness: float) -> None:
    model, source, target = encoder_decoder(dtype=torch.float32), random_ids(3, 7), random_ids(3, 6)
    before = model(source, target)
    pack(model, form)
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    after = model(source, target)
    assert 0 < (after - before).norm() < nearness * before.norm()


@pytest.mark.parametrize("form", FEWER)
def test_tied_tables_stay_as_they_are_for_reading(form: Weights) -> None:
    model = decoder_only(dtype=torch.float32, tied="output")
    table = model.decoder.embedding.weight.clone()
    pack(model, form)
    assert torch.equal(model.decoder.embedding.weight, table)
    begun = model.start(random_ids(2, 3))
    assert [len(h.ids) for h in greedy(model, begun, StopCriteria((), 0, 4))] == [4, 4]


def test_only_float32_can_have_fewer_bits() -> None:
    with pytest.raises(UserError, match="weights = 'int8': needs a float32 model on a CPU, not float64 on cpu"):
        pack(decoder_only(dtype=torch.float64), "int8")
    with pytest.raises(UserError, match="weights = 'int4': must be one of float32, float16, bfloat16, int8"):
        pack(decoder_only(dtype=torch.float32), "int4")


def test_what_float32_has_no_kernel_for_stays_as_it_is() -> None:
    model = decoder_only(dtype=torch.float64)
    pack(model)
    assert not any(isinstance(module, ReorderedLinear | PackedLinear) for module in model.modules())


@pytest.mark.parametrize("settings", [{"tied": "all"}, {"bias": False}, {"kv_heads": 2}, {"activation": "swiglu"}])
def test_a_packed_model_has_the_same_weights_and_says_the_same(settings: dict[str, object]) -> None:
    model, source, target = encoder_decoder(dtype=torch.float32, **settings), random_ids(3, 7), random_ids(3, 6)
    weights, before = dict(model.named_parameters()), model(source, target)
    pack(model)
    assert isinstance(model.decoder.blocks[0].attention.query, ReorderedLinear)
    after = dict(model.named_parameters())
    assert after.keys() == weights.keys()
    assert all(after[name] is weight for name, weight in weights.items())
    with torch.inference_mode():
        torch.testing.assert_close(model(source, target), before, rtol=1e-4, atol=1e-5)


def test_a_packed_model_still_learns() -> None:
    model, ids = decoder_only(dtype=torch.float32), random_ids(2, 5)
    twin = copy.deepcopy(model)
    pack(model)
    for each in (model, twin):
        each(ids).square().mean().backward()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert one.grad is not None
        assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize("name", ["decoder.blocks.0.attention.key.weight", "decoder.blocks.0.attention.value.bias"])
@torch.no_grad()
def test_what_changes_in_a_packed_model_changes_what_it_says(name: str) -> None:
    model, ids = decoder_only(dtype=torch.float32, bias=True), random_ids(2, 5)
    pack(model)
    before = model(ids)
    model.get_parameter(name).mul_(3).add_(0.5)
    after = model(ids)
    assert (after - before).abs().max() > 1e-3
    plain = decoder_only(dtype=torch.float32, bias=True)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(after, plain(ids), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_copy_of_a_packed_model_goes_its_own_way() -> None:
    model, ids = encoder_only(dtype=torch.float32), random_ids(2, 5)
    pack(model)
    before = model(ids)
    twin = copy.deepcopy(model)
    torch.testing.assert_close(twin(ids), before)
    twin.get_parameter("encoder.blocks.0.attention.query.weight").zero_()
    assert not torch.equal(twin(ids), before)
    assert torch.equal(model(ids), before)


def test_what_is_packed_can_have_fewer_bits() -> None:
    model, ids = decoder_only(dtype=torch.float32), random_ids(2, 5)
    twin = copy.deepcopy(model)
    pack(model)
    for each in (model, twin):
        pack(each, "int8")
    assert torch.equal(model(ids), twin(ids))


@pytest.mark.parametrize("form", ["float32", "float16"])
def test_threads_that_share_a_model_get_what_they_would_alone(form: Weights) -> None:
    """One product stands for three matrices: nobody may take another one's."""
    model, rows = decoder_only(dtype=torch.float32), [random_ids(1, 6) for _ in range(4)]
    pack(model, form)
    with torch.inference_mode():
        alone = [model(row) for row in rows]

    @torch.inference_mode()
    def ask(number: int) -> bool:
        return all(torch.allclose(model(rows[number]), alone[number], rtol=1e-4, atol=1e-5) for _ in range(50))

    with ThreadPoolExecutor(len(rows)) as pool:
        assert all(pool.map(ask, range(len(rows))))


def test_weights_that_do_not_count_their_changes_stay_as_they_are() -> None:
    with torch.inference_mode():
        model = decoder_only(dtype=torch.float32)
    pack(model)
    assert not any(isinstance(module, ReorderedLinear) for module in model.modules())


def test_small_matrices_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    model = decoder_only(dtype=torch.float32)
    pack(model)
    assert not any(isinstance(module, ReorderedLinear) for module in model.modules())


def test_bfloat16_needs_units_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "has_bfloat16", lambda: False)
    with pytest.raises(UserError, match="weights = 'bfloat16': this processor has no units for it"):
        store_matrices(decoder_only(dtype=torch.float32), "bfloat16")


@torch.inference_mode()
def test_sums_of_int8_do_not_overflow() -> None:
    """The largest products, all of one sign: with too many bits, sums in 16 bits would be cut."""
    linear = nn.Linear(256, 16, bias=False)
    nn.init.ones_(linear.weight)
    torch.testing.assert_close(
        int8_product([linear])(torch.ones(3, 256)), torch.full((3, 16), 256.0), rtol=0.01, atol=0
    )


@torch.no_grad()
def test_a_single_row_is_multiplied_by_the_parameters_themselves() -> None:
    """They stay what they are, are read by others (tied embeddings), and may change."""
    model = decoder_only(dtype=torch.float32, tied="all")
    twin, ids = copy.deepcopy(model), random_ids(1, 1)
    parameters = list(model.parameters())
    pack(model)
    for _ in range(2):
        with torch.inference_mode():
            torch.testing.assert_close(model(ids), twin(ids), rtol=1e-4, atol=1e-5)
        assert all(one is other for one, other in zip(model.parameters(), parameters, strict=True))
        assert not model.decoder.embedding.weight.is_contiguous()
        for each in (model, twin):
            for parameter in each.parameters():
                parameter.mul_(1.1).add_(0.01)
    many = random_ids(3, 4)
    torch.testing.assert_close(model(many), twin(many), rtol=1e-4, atol=1e-5)
