"""Weights in int8 on a GPU: the product is that of the rounded matrix, however many rows, and so is what is written.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clearhead.config import ModelConfig
from clearhead.decode.beam import beam
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import decoder_for, store_matrices
from clearhead.fast.gpu.recorded import RECORDING, set_precision
from clearhead.fast.int8 import Int8Linear, quantise
from clearhead.model import build_model
from clearhead.model.norm import LayerNorm
from on_gpu import assert_written, needs_gpu
from tiny_models import random_ids

pytestmark = needs_gpu


def rounded(layer: Int8Linear) -> torch.Tensor:
    """The matrix that a quantised layer multiplies by."""
    return layer.quantised * layer.scale[:, None]


@pytest.mark.parametrize("rows", [1, 3, 9])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_joined_layers_multiply_by_the_rounded_matrices(rows: int, bias: bool) -> None:
    from clearhead.fast.gpu.fused import FusedLinear

    layers = [Int8Linear(nn.Linear(96, outputs, bias).cuda()) for outputs in (40, 50)]
    x = torch.randn(rows, 96, device="cuda")
    wanted = [F.linear(x, rounded(layer), layer.bias) for layer in layers]
    joined = FusedLinear(layers, torch.float32)
    torch.testing.assert_close(joined(x), torch.cat(wanted, dim=1), rtol=1e-4, atol=1e-4)
    for layer, expected in zip(layers, wanted, strict=True):  # their weights are parts of the joined ones now
        torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("outputs", [300, 9000])
@torch.inference_mode()
def test_a_norm_in_the_kernel_of_one_row(outputs: int) -> None:
    from clearhead.fast.gpu.fused import LogitsLinear
    from clearhead.fast.kernels.few_rows import Normed

    layer = Int8Linear(nn.Linear(96, outputs).cuda())
    norm = LayerNorm(96, 1e-5).cuda()
    nn.init.normal_(norm.weight)
    x = torch.randn(1, 96, device="cuda")
    found = LogitsLinear(layer, torch.bfloat16)(Normed(x, norm))
    torch.testing.assert_close(found, F.linear(norm(x), rounded(layer), layer.bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"position": "rotary", "activation": "swiglu", "norm": "rms", "norm_order": "pre", "bias": False},
        {"position": "sinusoidal", "activation": "relu", "norm_order": "post"},
        {"position": "rotary", "heads": 8},  # heads of 8 channels: too small for the kernels
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
@torch.inference_mode()
def test_a_search_is_that_of_the_rounded_model(family: Any, rows: int, options: dict[str, Any]) -> None:
    shape = {"vocab": 300, "d_model": 64, "d_ff": 96, "heads": 4, "layers": 2, "dropout": 0.0, "max_length": 40}
    model: Any = build_model(ModelConfig(family=family, **shape | options)).cuda().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    plain = deepcopy(model)
    for module in plain.modules():
        if isinstance(module, nn.Linear):  # logits that are tied to the embeddings keep a copy of their own
            module.weight = nn.Parameter(rounded(Int8Linear(module)))
    quantise(model)
    set_precision(model, None)
    both = (random_ids(rows, 7).cuda(), random_ids(rows, 4).cuda())
    inputs = both if family == "encoder-decoder" else both[1:]
    ending = StopCriteria((3,), 0, 12)
    decoder = decoder_for(model)
    for search in (greedy, beam):
        expected = search(plain, plain.start(*inputs), ending)
        for _ in range(2):
            for found, wanted in zip(search(decoder, decoder.start(*inputs), ending), expected, strict=True):
                assert_written(found, wanted, rel=1e-3)


@torch.inference_mode()
def test_weights_of_a_quarter_of_the_size_and_bfloat16_beside_them() -> None:
    model = build_model(ModelConfig(family="decoder-only", vocab=300, d_model=64, tied="none")).cuda().eval()
    before = sum(layer.weight.nbytes for layer in model.modules() if isinstance(layer, nn.Linear))
    store_matrices(model, "int8")
    assert RECORDING[model].dtype == torch.bfloat16
    layers = [layer for layer in model.modules() if isinstance(layer, Int8Linear)]
    assert sum(layer.quantised.nbytes for layer in layers) == before // 4
