"""Matrices for decoding on a CPU: in the order in which its kernels read them, as they are or in fewer bits.

| form    | memory      | what is rounded                                                                       |
|---------|-------------|---------------------------------------------------------------------------------------|
| float32 | twice       | nothing                                                                               |
| float16 | a half      | the weights, to 11 bits; each row is what it would be alone                           |
| int8    | a quarter   | the weights, and what is multiplied with them with one scale for all rows of a batch  |

Query, key and value of self-attention are multiplied with the same vectors: they become one matrix, for one large
product takes less time than three small ones.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import Weights, require
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly

Model = EncoderDecoder | DecoderOnly | EncoderOnly
Place = tuple[nn.Module, str]  # of a matrix: a module, and the name of its child
SMALL = 2**18  # numbers: a smaller float32 matrix is faster as it is, for calling oneDNN takes longer than its product


class Packed:
    """Matrices in float32, in oneDNN's order. Where one of them has changed since, they are put in order again."""

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.linears = linears
        self.parameters = [parameter for linear in linears for parameter in linear.parameters()]
        self.versions: list[int] = []

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        versions = [parameter._version for parameter in self.parameters]
        if versions != self.versions:
            weight, self.bias = joined(self.linears)
            self.weight, self.versions = torch.ops.mkldnn._reorder_linear_weight(weight), versions
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    def __deepcopy__(self, memo: dict[int, Any]) -> Packed:
        """A copy of a model puts its matrices in order itself."""
        return Packed(copy.deepcopy(self.linears, memo))


class Half:
    """Matrices in float16, whose products are summed in float32: half as much to read, which is what a step waits for.

    A number above 65504 would not fit: it becomes the largest that does.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.packed = torch.ops.quantized.linear_prepack_fp16(*joined(linears))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed)


class Quantised:
    """Matrices in int8: each of their rows is divided by its own scale and rounded to -127 ... 127.

    What is multiplied with them is rounded in the same way when it comes, with one scale for the whole tensor: to 7
    bits, so that the sums of two products that the processor forms in 16 bits cannot overflow. Bias and result are
    float32.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        weight, bias = joined(linears)
        scales = weight.abs().amax(1).clamp(min=1e-12) / 127  # (F,)
        with warnings.catch_warnings(action="ignore"):  # deprecated, but the only way to the kernel in torch up to 2.13
            zeros = torch.zeros_like(scales, dtype=torch.long)
            whole = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(whole, bias)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=True)


def joined(linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Weight (F, D) and bias (F) of matrices, one below the other, out of training's sight."""
    weight = torch.cat([linear.weight.detach() for linear in linears])
    biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
    return weight, torch.cat(biases) if biases else None


Form = type[Packed] | type[Half] | type[Quantised]
FORMS: dict[Weights, Form] = {"float32": Packed, "float16": Half, "int8": Quantised}


class Together:
    """Matrices that are multiplied with the same vectors in turn: whose turn comes first does it for all."""

    def __init__(self, linears: Sequence[nn.Linear], form: Form) -> None:
        self.product, self.sizes = form(linears), [linear.out_features for linear in linears]
        self.waiting: tuple[Tensor, Sequence[Tensor]] | None = None  # the vectors, and what was not yet asked for

    def part(self, x: Tensor, index: int) -> Tensor:
        """What one of them makes of x."""
        if len(self.sizes) == 1:
            return self.product(x)
        waiting = self.waiting
        if waiting is None or waiting[0] is not x:
            waiting = x, torch.split(self.product(x), self.sizes, dim=-1)
        self.waiting = waiting if index + 1 < len(self.sizes) else None
        return waiting[1][index]


class Part(nn.Module):
    """One of them, in fewer bits, where a matrix was."""

    def __init__(self, together: Together, index: int) -> None:
        super().__init__()
        self.together, self.index = together, index

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return self.together.part(x, self.index)


class WholePart(nn.Linear):
    """One of them, in float32: the matrix stays what is looked at, changed and learned from."""

    def __init__(self, linear: nn.Linear, together: Together, index: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias  # not copies: what is tied stays so
        self.together, self.index = together, index

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return F.linear(x, self.weight, self.bias) if torch.is_grad_enabled() else self.together.part(x, self.index)


def pack(model: Model, weights: Weights = "float32") -> None:
    """Give every matrix another form, in place: in float32 the same numbers, else only to decode with from then on.

    Embeddings and norms stay as they are; logits from the embeddings' table get a copy of it.
    """
    require(weights in FORMS, f"weights = {weights!r}: must be one of {', '.join(FORMS)}")
    kinds = {(p.device.type, p.dtype) for p in model.parameters()}
    possible, exact = kinds == {("cpu", torch.float32)}, weights == "float32"
    if exact and not (possible and has_kernel() and counts_changes(model)):
        return  # as it is, it computes the same
    found = ", ".join(sorted(f"{dtype} on {device}".removeprefix("torch.") for device, dtype in kinds))
    require(possible, f"weights = {weights!r}: made of float32 on a CPU, not of {found}; use device cpu, or float32")
    for places in matrices(model):
        linears: list[Any] = [parent.get_submodule(name) for parent, name in places]
        if exact and sum(linear.weight.numel() for linear in linears) < SMALL:
            continue
        together = Together(linears, FORMS[weights])
        for index, ((parent, name), linear) in enumerate(zip(places, linears, strict=True)):
            setattr(parent, name, WholePart(linear, together, index) if exact else Part(together, index))


@cache
def has_kernel() -> bool:
    """Whether this torch multiplies with a matrix in oneDNN's order: on some processors it was built without."""
    x = torch.arange(16.0).view(2, 8)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(torch.eye(8))
        return torch.equal(torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""), x)
    except (AttributeError, RuntimeError):  # no such operation, or none of this kind
        return False


def counts_changes(model: Model) -> bool:
    """Whether its weights know when they are changed: those made in inference mode do not."""
    return not any(parameter.is_inference() for parameter in model.parameters())


def matrices(model: Model) -> Iterator[list[Place]]:
    """Where all matrices are; those that are multiplied with the same vectors side by side."""
    joint: list[list[Place]] = []
    for block in model.blocks():
        joint.append([(block.attention, name) for name in ("query", "key", "value")])
        if block.cross:
            joint.append([(block.cross_attention, name) for name in ("key", "value")])
    yield from joint
    named = {place for places in joint for place in places}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and (parent, name) not in named:
                yield [(parent, name)]
