"""A forward pass can be exported as one program for all shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim, export

from tiny_models import assert_same, decoder_only, encoder_decoder, encoder_only, random_ids

B, T, S = (Dim(name, max=64) for name in "BTS")  # batch, target, source


def real(rows: int, length: int) -> Tensor:
    return torch.arange(length) < torch.arange(1, rows + 1)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "inputs", "shapes"),
    [
        (encoder_decoder, lambda b, t, s: (random_ids(b, s), random_ids(b, t), real(b, s)), ((B, S), (B, T), (B, S))),
        (decoder_only, lambda b, t, _: (random_ids(b, t),), ((B, T),)),
        (encoder_only, lambda b, t, _: (random_ids(b, t), real(b, t)), ((B, T), (B, T))),
    ],
)
@torch.no_grad()
def test_an_exported_program_is_the_model_at_other_shapes(
    build: Callable[..., Any], inputs: Callable[..., tuple[Tensor, ...]], shapes: tuple[tuple[Dim, Dim], ...]
) -> None:
    model = build(dtype=torch.float32)
    dynamic = tuple({0: rows, 1: columns} for rows, columns in shapes)
    program = export(model, inputs(2, 6, 7), dynamic_shapes=dynamic).module()
    for sizes in ((3, 4, 5), (5, 30, 33)):  # the model computes attention in one way and in the other
        given = inputs(*sizes)
        assert_same(program(*given), model(*given))
