"""Matrices in int8 for a GPU keep each number to half a step; what a GPU computes with them is in tests/gpu."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.fast.int8 import Int8Linear, quantise, quantise_rows
from tiny_models import encoder_decoder, random_ids


def test_each_number_keeps_its_value_to_half_a_step_of_its_row() -> None:
    weight = torch.randn(6, 40)
    weight[2] = 0
    weight[3] *= 1000  # harms no other row
    numbers, scales = quantise_rows(weight)
    assert (numbers.dtype, int(numbers.abs().max())) == (torch.int8, 127)
    assert ((numbers * scales[:, None] - weight).abs() <= 0.5001 * scales[:, None]).all()


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_multiplies_by_the_rounded_matrix(bias: bool) -> None:
    linear, x = nn.Linear(30, 8, bias), torch.randn(2, 5, 30)
    layer = Int8Linear(linear)
    rounded = nn.functional.linear(x, layer.quantised * layer.scale[:, None], linear.bias)
    torch.testing.assert_close(layer(x), rounded)
    assert layer(x.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


@torch.inference_mode()
def test_all_matrices_of_a_model_are_replaced_and_its_embeddings_stay() -> None:
    model = encoder_decoder(dtype=torch.float32, tied="all")
    source, target = random_ids(2, 5), random_ids(2, 4)
    exact = model(source, target)
    table = model.decoder.embedding.weight.clone()
    quantise(model)
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    assert torch.equal(model.decoder.embedding.weight, table)
    rounded = model(source, target)
    assert 0 < (rounded - exact).norm() < 0.05 * exact.norm()
