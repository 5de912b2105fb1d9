"""Matrices for decoding on a CPU: stored in the order in which its kernels read them, in float32 or in fewer bits.

| weights  | memory    | what is rounded                                                                            |
|----------|-----------|--------------------------------------------------------------------------------------------|
| float32  | twice     | nothing                                                                                    |
| float16  | a half    | the weights, to 11 bits; a row of a batch gives what it would give alone                   |
| bfloat16 | a half    | weights, inputs and results, to 8 bits; only where the processor has units for it          |
| int8     | a quarter | weights and inputs; the inputs with one scale for all rows of a batch                      |

Query, key and value of self-attention are multiplied by the same vectors, and so joined into one matrix: one large
product takes less time than three small ones.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import Weights, require
from clearhead.fast.int8 import row_scales
from clearhead.model import Model

Child = tuple[nn.Module, str]  # a submodule: its parent, and its name there
SMALL = 2**18  # weights: a smaller float32 matrix stays as it is, since calling oneDNN takes longer than it saves


class Float32Product:
    """Multiply by matrices in float32, in oneDNN's order; if one of them has changed, they are reordered again.

    One row is multiplied by the plain matrices, of which those with more outputs than inputs are stored column by
    column from then on: both are limited by the speed of memory, and read it faster than oneDNN's kernel does.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.linears = linears
        self.parameters = [parameter for linear in linears for parameter in linear.parameters()]
        self.versions: list[int] = []
        self.by_columns = False  # whether wide matrices are stored so

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if x.numel() == x.size(-1):
            self.store_by_columns()
            return self.multiply_plainly(x)
        if x.dtype != torch.float32:  # the model has been converted since
            return self.multiply_plainly(x)
        versions = [parameter._version for parameter in self.parameters]
        if versions != self.versions:
            weight, self.bias = joined(self.linears)
            self.weight = torch.ops.mkldnn._reorder_linear_weight(weight)
            self.versions = versions
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    def store_by_columns(self) -> None:
        """Store the matrices with more outputs than inputs column by column, once."""
        if not self.by_columns:
            with torch.inference_mode(False):  # or parameters would no longer count their changes
                for linear in self.linears:
                    if linear.out_features >= linear.in_features:
                        linear.weight.data = linear.weight.data.T.contiguous().T
            self.by_columns = True

    def multiply_plainly(self, x: Tensor) -> Tensor:
        """The product with the matrices as they are."""
        products = [F.linear(x, linear.weight, linear.bias) for linear in self.linears]
        return products[0] if len(products) == 1 else torch.cat(products, dim=-1)

    def __deepcopy__(self, memo: dict[int, Any]) -> Float32Product:
        """Copy the matrices only; the copy reorders them itself."""
        return Float32Product(copy.deepcopy(self.linears, memo))


class Float16Product:
    """Multiply by matrices in float16, with sums in float32: half as many bytes to read, which is what limits a step.

    Weights above 65504 do not fit and become 65504.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.packed = torch.ops.quantized.linear_prepack_fp16(*joined(linears))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed)


class Bfloat16Product:
    """Multiply by matrices in bfloat16, with sums in float32: for processors with units for it, AVX-512 BF16 or AMX."""

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        weight, bias = joined(linears)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16())
        self.bias = None if bias is None else bias.bfloat16()

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.mkldnn._linear_pointwise(x.bfloat16(), self.weight, self.bias, "none", [], "").float()


class Int8Product:
    """Multiply by matrices in int8: each row is divided by its own scale and rounded to -127 ... 127.

    Inputs are quantised at each call, with one scale for the whole tensor. Processors without VNNI form the sums of two
    products in 16 bits: there the inputs have 7 bits, so that these cannot overflow. Bias and result are float32.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        weight, bias = joined(linears)
        scales = row_scales(weight)
        with warnings.catch_warnings(action="ignore"):  # deprecated, but the only way to the kernel in torch up to 2.13
            zeros = torch.zeros_like(scales, dtype=torch.long)
            quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        with int8_engine():
            self.packed = torch.ops.quantized.linear_prepack(quantised, bias)
        self.seven_bits = not torch.cpu._is_vnni_supported()

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=self.seven_bits)


@contextmanager
def int8_engine() -> Iterator[None]:
    """A context in which matrices are packed for the fastest kernels: those of oneDNN use AMX, others do not."""
    usual = torch.backends.quantized.engine
    if torch.cpu._is_amx_tile_supported():
        torch.backends.quantized.engine = "onednn"
    try:
        yield
    finally:
        torch.backends.quantized.engine = usual


def joined(linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """The weights (F, D) and biases (F) of several matrices, concatenated and without gradients."""
    weight = torch.cat([linear.weight.detach() for linear in linears])
    biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
    return weight, torch.cat(biases) if biases else None


Product = type[Float32Product] | type[Float16Product] | type[Bfloat16Product] | type[Int8Product]
PRODUCTS: dict[Weights, Product] = {
    "float32": Float32Product,
    "float16": Float16Product,
    "bfloat16": Bfloat16Product,
    "int8": Int8Product,
}


class JoinedMatrices:
    """Matrices that are multiplied by the same vectors: the first call computes the products of all of them."""

    def __init__(self, linears: Sequence[nn.Linear], product: Product) -> None:
        self.product = product(linears)
        self.sizes = [linear.out_features for linear in linears]
        self.computed: tuple[Tensor, Sequence[Tensor]] | None = None  # the vectors, and the product of each matrix

    def multiply(self, x: Tensor, index: int) -> Tensor:
        """Return the product of matrix `index` and x."""
        if len(self.sizes) == 1:
            return self.product(x)
        computed = self.computed
        if computed is None or computed[0] is not x:
            computed = x, torch.split(self.product(x), self.sizes, dim=-1)
        self.computed = computed if index + 1 < len(self.sizes) else None
        return computed[1][index]


class PackedLinear(nn.Module):
    """Replaces one of the matrices by its part of the packed ones, in fewer bits: the matrix itself is freed."""

    def __init__(self, matrices: JoinedMatrices, index: int) -> None:
        super().__init__()
        self.matrices = matrices
        self.index = index

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return self.matrices.multiply(x, self.index)


class ReorderedLinear(nn.Linear):
    """Replaces one of the matrices, in float32: its parameters remain, to be shown, changed and trained."""

    def __init__(self, linear: nn.Linear, matrices: JoinedMatrices, index: int) -> None:
        nn.Module.__init__(self)
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.weight = linear.weight  # not a copy: what is tied stays tied
        self.bias = linear.bias
        self.matrices = matrices
        self.index = index

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        return self.matrices.multiply(x, self.index)


def pack(model: Model, weights: Weights = "float32") -> None:
    """Replace every matrix in place: in float32 by one that computes the same, else by one for decoding only.

    Embeddings and norms stay as they are; logits that are tied to the embeddings get a copy of the table.
    """
    require(weights in PRODUCTS, f"weights = {weights!r}: must be one of {', '.join(PRODUCTS)}")
    kinds = {(p.device.type, p.dtype) for p in model.parameters()}
    possible = kinds == {("cpu", torch.float32)}
    exact = weights == "float32"
    if exact and not (possible and has_kernel() and counts_changes(model)):
        return  # left as it is, the model computes the same
    found = ", ".join(sorted(f"{dtype} on {device}".removeprefix("torch.") for device, dtype in kinds))
    require(possible, f"weights = {weights!r}: needs a float32 model on a CPU, not {found}; use device cpu, or float32")
    require(
        weights != "bfloat16" or has_bfloat16(),
        "weights = 'bfloat16': this processor has no units for it, AVX-512 BF16 or AMX; use float16 or int8",
    )
    for children in joint_matrices(model):
        linears: list[Any] = [parent.get_submodule(name) for parent, name in children]
        if exact and sum(linear.weight.numel() for linear in linears) < SMALL:
            continue
        matrices = JoinedMatrices(linears, PRODUCTS[weights])
        for index, ((parent, name), linear) in enumerate(zip(children, linears, strict=True)):
            setattr(parent, name, ReorderedLinear(linear, matrices, index) if exact else PackedLinear(matrices, index))


@cache
def has_kernel() -> bool:
    """Whether this torch can multiply by a matrix in oneDNN's order: for some processors it is built without."""
    x = torch.arange(16.0).view(2, 8)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(torch.eye(8))
        return torch.equal(torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""), x)
    except (AttributeError, RuntimeError):  # no such operation, or not for these arguments
        return False


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    return has_kernel() and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def counts_changes(model: Model) -> bool:
    """Whether the parameters count their changes: those that were created in inference mode do not."""
    return not any(parameter.is_inference() for parameter in model.parameters())


def joint_matrices(model: Model) -> Iterator[list[Child]]:
    """Yield all matrices; those that are multiplied by the same vectors together."""
    joint: list[list[Child]] = []
    for block in model.blocks():
        joint.append([(block.attention, name) for name in ("query", "key", "value")])
        if block.cross:
            joint.append([(block.cross_attention, name) for name in ("key", "value")])
    yield from joint
    named = {child for children in joint for child in children}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and (parent, name) not in named:
                yield [(parent, name)]
