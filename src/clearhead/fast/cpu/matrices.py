"""Matrices for decoding on a CPU: stored in the order in which its kernels read them, in float32 or in fewer bits.

| weights  | memory    | what is rounded                                                                            |
|----------|-----------|--------------------------------------------------------------------------------------------|
| float32  | twice     | nothing                                                                                    |
| float16  | a half    | the weights, to 11 bits; a row of a batch gives what it would give alone                   |
| bfloat16 | a half    | weights, inputs and results, to 8 bits; only where the processor has units for it          |
| int8     | a quarter | weights and inputs; the inputs with one scale for all rows of a batch                      |

Layers that read the same input are joined into one matrix (joined.py).

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import UserError, Weights, require
from clearhead.fast import torch_private
from clearhead.fast.int8 import row_scales
from clearhead.fast.joined import JoinedLinear, SharedOutputs, layers_by_input
from clearhead.fast.torch_private import Product, processor_has
from clearhead.model import Model

MIN_REORDERED_WEIGHTS = 2**18  # smaller float32 matrices are not reordered: calling oneDNN costs more than it saves


class Float32Product:
    """Multiply by matrices in float32, in oneDNN's order; if one of them has changed, they are reordered again.

    One row is multiplied by the plain matrices, of which those with more outputs than inputs are stored column by
    column from then on: both are limited by the speed of memory, and read it faster than oneDNN's kernel does.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.linears = linears
        self.parameters = [parameter for linear in linears for parameter in linear.parameters()]
        self.versions: list[int] = []  # of the parameters that were reordered
        self.by_columns = False  # whether wide matrices are stored so

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if x.numel() == x.size(-1):
            self.store_by_columns()
            return self.multiply_plainly(x)
        if x.dtype != torch.float32:  # under autocast
            return self.multiply_plainly(x)
        versions = [parameter._version for parameter in self.parameters]
        if versions != self.versions:
            joined = JoinedLinear(self.linears)
            self.product = torch_private.reordered_product(joined.weight, joined.bias)
            self.versions = versions
        return self.product(x)

    def store_by_columns(self) -> None:
        """Store the matrices with more outputs than inputs column by column, once."""
        if not self.by_columns:
            with torch.inference_mode(False):  # inference tensors have no version counter
                for linear in self.linears:
                    if linear.out_features >= linear.in_features:
                        linear.weight.data = linear.weight.data.T.contiguous().T
            self.by_columns = True

    def multiply_plainly(self, x: Tensor) -> Tensor:
        """The product with the matrices as they are."""
        products = [F.linear(x, linear.weight, linear.bias) for linear in self.linears]
        return products[0] if len(products) == 1 else torch.cat(products, dim=-1)

    def __getstate__(self) -> Sequence[nn.Linear]:
        """Copy and save the plain matrices only; they are reordered again when first used."""
        return self.linears

    def __setstate__(self, linears: Sequence[nn.Linear]) -> None:
        self.__init__(linears)  # type: ignore[misc]


def float16_product(linears: Sequence[nn.Linear]) -> Product:
    """Multiply by matrices in float16, with sums in float32: half as many bytes to read, which limits a step."""
    joined = JoinedLinear(linears)
    return torch_private.float16_product(joined.weight, joined.bias)


def bfloat16_product(linears: Sequence[nn.Linear]) -> Product:
    """Multiply by matrices in bfloat16, with sums in float32: for processors with units for it, AVX-512 BF16 or AMX."""
    joined = JoinedLinear(linears, torch.bfloat16)
    product = torch_private.reordered_product(joined.weight, joined.bias)
    return lambda x: product(x.bfloat16()).float()


def int8_product(linears: Sequence[nn.Linear]) -> Product:
    """Multiply by matrices in int8: each row is divided by its own scale and rounded; bias and result are float32."""
    joined = JoinedLinear(linears)
    return torch_private.int8_product(joined.weight, row_scales(joined.weight), joined.bias)


PRODUCTS: dict[Weights, Callable[[Sequence[nn.Linear]], Product]] = {
    "float32": Float32Product,
    "float16": float16_product,
    "bfloat16": bfloat16_product,
    "int8": int8_product,
}


class PackedLinear(nn.Module):
    """Replaces a linear layer by its part of joined matrices in fewer bits: its own matrix is freed."""

    def __init__(self, shared: SharedOutputs, index: int, weights: Weights) -> None:
        super().__init__()
        self.shared = shared
        self.index = index
        self.weights = weights

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return self.shared.of(x, self.index)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PackedLinear:
        """Refuse `.to`, `.half` and the like: the packed matrix cannot follow."""
        check_move(fn, self.weights)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def __getstate__(self) -> Any:
        raise UserError(
            f"weights = {self.weights!r}: packed matrices cannot be copied or saved; load the run again, or with "
            "weights='float32'"
        )

    def _save_to_state_dict(self, *_: Any) -> None:
        self.__getstate__()  # without its matrices, a state_dict would be incomplete


def check_move(fn: Callable[[Tensor], Tensor], weights: Weights) -> None:
    """Refuse what `.to`, `.half` and the like do to a parameter, if packed matrices cannot follow."""
    moved = fn(torch.zeros(1))
    require(
        moved.is_cpu and moved.dtype == torch.float32,
        f"weights = {weights!r}: these matrices are packed for a CPU and cannot become {moved.dtype} on "
        f"{moved.device}; load the run again with that device, or with weights='float32'",
    )


class ReorderedLinear(nn.Linear):
    """Replaces a linear layer, in float32: its parameters remain, to be shown, changed and trained."""

    def __init__(self, linear: nn.Linear, shared: SharedOutputs, index: int) -> None:
        nn.Module.__init__(self)
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.weight = linear.weight  # not a copy: what is tied stays tied
        self.bias = linear.bias
        self.shared = shared
        self.index = index

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        return self.shared.of(x, self.index)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Linear:
        """Become the plain layer again where the model is moved to another device or dtype."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if not (self.weight.is_cpu and self.weight.dtype == torch.float32):
            del self.shared, self.index
            self.__class__ = nn.Linear  # type: ignore[assignment]
        return self


def pack(model: Model, weights: Weights = "float32") -> None:
    """Replace every matrix in place: in float32 by one that computes the same, else by one for decoding only.

    Embeddings and norms stay as they are; logits that are tied to the embeddings get a copy of the table.
    """
    require(weights in PRODUCTS, f"weights = {weights!r}: must be one of {', '.join(PRODUCTS)}")
    kinds = {(p.device.type, p.dtype) for p in model.parameters()}
    possible = kinds == {("cpu", torch.float32)}
    exact = weights == "float32"
    if exact and not (possible and torch_private.has_reordered_product() and counts_changes(model)):
        return  # left as it is, the model computes the same
    found = ", ".join(sorted(f"{dtype} on {device}".removeprefix("torch.") for device, dtype in kinds))
    require(possible, f"weights = {weights!r}: needs a float32 model on a CPU, not {found}; use device cpu, or float32")
    require(
        weights != "bfloat16" or has_bfloat16(),
        "weights = 'bfloat16': this processor has no units for it, AVX-512 BF16 or AMX; use float16 or int8",
    )
    if not exact:
        model._apply = partial(apply_to_packed, model, weights)  # type: ignore[method-assign]
    for places in layers_by_input(model):
        linears: list[nn.Linear] = [parent.get_submodule(name) for parent, name in places]  # type: ignore[misc]
        if exact and sum(linear.weight.numel() for linear in linears) < MIN_REORDERED_WEIGHTS:
            continue
        shared = SharedOutputs(PRODUCTS[weights](linears), [linear.out_features for linear in linears])
        for index, ((parent, name), linear) in enumerate(zip(places, linears, strict=True)):
            layer = ReorderedLinear(linear, shared, index) if exact else PackedLinear(shared, index, weights)
            setattr(parent, name, layer)


def apply_to_packed(model: Model, weights: Weights, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    """Move a model with packed matrices, or refuse before any of its parameters has moved."""
    check_move(fn, weights)
    return nn.Module._apply(model, fn, recurse)  # type: ignore[no-untyped-call]


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    units = processor_has("avx512_bf16") or processor_has("amx_tile")
    return units and torch_private.has_reordered_product()


def counts_changes(model: Model) -> bool:
    """Whether parameters have a version counter; those created in inference mode have none."""
    return not any(parameter.is_inference() for parameter in model.parameters())
