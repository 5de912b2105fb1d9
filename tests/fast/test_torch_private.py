"""Private operators of torch may be missing: then the fallback computes the same."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from clearhead.fast import torch_private
from clearhead.fast.cpu import matrices
from clearhead.fast.cpu.decoder import direct_decoder
from clearhead.fast.cpu.matrices import pack
from tiny_models import decoder_only, random_ids


class WithoutOperators(types.SimpleNamespace):
    """A torch in which these namespaces of operators are empty, and these names do not exist."""

    def __init__(self, *missing: str) -> None:
        super().__init__(ops=types.SimpleNamespace(mkldnn=types.SimpleNamespace(), quantized=types.SimpleNamespace()))
        self.missing = missing

    def __getattr__(self, name: str) -> Any:
        if name in self.missing:
            raise AttributeError(name)
        return getattr(torch, name)


@pytest.fixture
def older_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch_private.has_reordered_product.cache_clear()
    monkeypatch.setattr(
        torch_private, "torch", WithoutOperators("_foreach_copy_", "_foreach_mul_", "_foreach_add_", "cpu")
    )
    yield
    torch_private.has_reordered_product.cache_clear()


@pytest.mark.usefixtures("older_torch")
def test_copies_one_by_one() -> None:
    targets, sources = [torch.zeros(2), torch.zeros(3, 3)], [torch.randn(2), torch.randn(3, 3)]
    torch_private.copy_all(targets, sources)
    assert all(torch.equal(target, source) for target, source in zip(targets, sources, strict=True))


def test_updates_one_by_one_are_those_of_the_operator(request: pytest.FixtureRequest) -> None:
    updates = [torch.randn(2), torch.randn(3, 3)]
    found, expected = ([torch.ones(2), torch.ones(3, 3)] for _ in range(2))
    torch_private.scale_and_add(expected, 0.9, updates, -0.1)
    request.getfixturevalue("older_torch")
    torch_private.scale_and_add(found, 0.9, updates, -0.1)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    torch.testing.assert_close(found, [0.9 - 0.1 * update for update in updates])


@pytest.mark.usefixtures("older_torch")
@pytest.mark.parametrize("bias", [torch.randn(4), None], ids=["bias", "no bias"])
def test_products_in_fewer_bits_are_computed_by_plain_torch(bias: torch.Tensor | None) -> None:
    weight, x = torch.randn(4, 16), torch.randn(3, 16)
    exact = F.linear(x, weight, bias)
    half = torch_private.float16_product(weight, bias)(x)
    torch.testing.assert_close(half, exact, rtol=1e-2, atol=1e-2)
    scales = weight.abs().amax(1) / 127
    torch.testing.assert_close(torch_private.int8_product(weight, scales, bias)(x), exact, rtol=0.1, atol=0.1)
    assert not torch.equal(half, exact)  # it is rounded, as by the operator


@pytest.mark.usefixtures("older_torch")
def test_unknown_units_count_as_missing() -> None:
    assert not torch_private.processor_has("vnni")
    assert not torch_private.has_reordered_product()


@pytest.mark.usefixtures("older_torch")
@torch.inference_mode()
def test_a_model_decodes_the_same_without_private_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MIN_REORDERED_WEIGHTS", 0)
    model, ids = decoder_only(dtype=torch.float32), random_ids(2, 5)
    expected, _ = model.start(ids)
    pack(model)  # leaves the matrices as they are
    logits, _ = direct_decoder(model).start(ids)
    torch.testing.assert_close(logits, expected)
