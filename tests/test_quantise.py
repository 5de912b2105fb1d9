"""Matrices in int8: near to what they were, everywhere, and still good enough to write the same words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.config import UserError
from clearhead.decode.quantise import QuantisedLinear, quantise
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


@torch.inference_mode()
def test_a_quantised_model_says_nearly_the_same() -> None:
    model, source, target = encoder_decoder(dtype=torch.float32), random_ids(3, 7), random_ids(3, 6)
    before = model(source, target)
    quantise(model)
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    after = model(source, target)
    assert 0 < (after - before).norm() < 0.1 * before.norm()


def test_tied_tables_stay_as_they_are_for_reading() -> None:
    model = decoder_only(dtype=torch.float32, tied="output")
    table = model.decoder.embedding.weight.clone()
    quantise(model)
    assert torch.equal(model.decoder.embedding.weight, table)
    begun = model.start(random_ids(2, 3))
    assert [len(h.ids) for h in greedy(model, begun, Ending((), 0, 4))] == [4, 4]


def test_only_float32_can_be_quantised() -> None:
    with pytest.raises(UserError, match="int8 works on float32 on the CPU"):
        quantise(decoder_only(dtype=torch.float64))
