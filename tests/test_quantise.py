"""Matrices in fewer bits: near to what they were, and good enough to write the same words; turned: the same."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from clearhead.config import UserError
from clearhead.decode.quantise import HalfLinear, QuantisedLinear, TurnedLinear, quantise, turn
from clearhead.decode.search import Ending, greedy
from tiny_models import decoder_only, encoder_decoder, random_ids


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
    error = (QuantisedLinear(linear)(eye) - zero - linear.weight.T).abs()
    assert (error <= 0.5 * steps + 1e-2 * steps.clamp(max=1)).all()


@pytest.mark.parametrize("bias", [True, False])
def test_half_precision_rounds_each_number_once_and_sums_in_float32(bias: bool) -> None:
    linear, x = nn.Linear(300, 8, bias), torch.randn(2, 5, 300)
    rounded = nn.functional.linear(x, linear.weight.half().float(), linear.bias)
    torch.testing.assert_close(HalfLinear(linear)(x), rounded, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("form", "nearness"), [("int8", 0.1), ("float16", 1e-3)])
@torch.inference_mode()
def test_a_smaller_model_says_nearly_the_same(form: str, nearness: float) -> None:
    model, source, target = encoder_decoder(dtype=torch.float32), random_ids(3, 7), random_ids(3, 6)
    before = model(source, target)
    quantise(model, form)
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    after = model(source, target)
    assert 0 < (after - before).norm() < nearness * before.norm()


@pytest.mark.parametrize("form", ["int8", "float16"])
def test_tied_tables_stay_as_they_are_for_reading(form: str) -> None:
    model = decoder_only(dtype=torch.float32, tied="output")
    table = model.decoder.embedding.weight.clone()
    quantise(model, form)
    assert torch.equal(model.decoder.embedding.weight, table)
    begun = model.start(random_ids(2, 3))
    assert [len(h.ids) for h in greedy(model, begun, Ending((), 0, 4))] == [4, 4]


def test_only_float32_can_be_quantised() -> None:
    with pytest.raises(UserError, match="int8 works on float32 on the CPU"):
        quantise(decoder_only(dtype=torch.float64))
    with pytest.raises(UserError, match="form = 'int4': a matrix can become float16 or int8"):
        quantise(decoder_only(dtype=torch.float32), "int4")


@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_a_turned_model_has_the_same_weights_and_says_the_same(bias: bool) -> None:
    model, source, target = encoder_decoder(tied="all", bias=bias), random_ids(3, 7), random_ids(3, 6)
    weights, before = dict(model.named_parameters()), model(source, target)
    turn(model)
    assert isinstance(model.decoder.blocks[0].feed_forward.up, TurnedLinear)
    assert model.head.project.weight is model.encoder.embedding.weight
    after = dict(model.named_parameters())
    assert after.keys() == weights.keys()
    assert all(after[name] is weight for name, weight in weights.items())
    torch.testing.assert_close(model(source, target), before)


def test_what_is_turned_can_be_quantised() -> None:
    model, ids = decoder_only(dtype=torch.float32), random_ids(2, 5)
    twin = copy.deepcopy(model)
    turn(model)
    for each in (model, twin):
        quantise(each)
    assert torch.equal(model(ids), twin(ids))
