"""Matrices for decoding on a CPU: float32 multiplied the other way round, or fewer bits for a little precision.

| form    | memory    | what is rounded                                                                         |
|---------|-----------|-----------------------------------------------------------------------------------------|
| float32 | the same  | nothing                                                                                 |
| float16 | a half    | the weights, to 11 bits; each row is what it would be alone                             |
| int8    | a quarter | the weights, and what is multiplied with them with one scale for all rows of a batch    |

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from clearhead.config import Weights, require
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly


class TurnedLinear(nn.Linear):
    """The same matrix with the same numbers, multiplied as (W xᵀ)ᵀ: with a few rows x, faster on a CPU than x Wᵀ."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias  # not copies: what is tied stays so

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        columns = x.flatten(0, -2).T
        turned = self.weight @ columns if self.bias is None else torch.addmm(self.bias[:, None], self.weight, columns)
        return turned.T.contiguous().view(*x.shape[:-1], self.out_features)


class HalfLinear(nn.Module):
    """A matrix in float16, whose products are summed in float32: half as much to read, which is what a step waits for.

    A number above 65504 would not fit: it becomes the largest that does.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight, bias = plain(linear)
        self.packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed)


class QuantisedLinear(nn.Module):
    """A matrix in int8: each of its rows is divided by its own scale and rounded to -127 ... 127.

    What is multiplied with it is rounded in the same way when it comes, with one scale for the whole tensor: to 7 bits,
    so that the sums of two products that the processor forms in 16 bits cannot overflow. Bias and result are float32.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight, bias = plain(linear)
        scales = weight.abs().amax(1).clamp(min=1e-12) / 127  # (F,)
        with warnings.catch_warnings(action="ignore"):  # deprecated, but the only way to the kernel in torch up to 2.13
            zeros = torch.zeros_like(scales, dtype=torch.long)
            whole = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(whole, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=True)


def plain(linear: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Weight (F, D) and bias, row by row and out of training's sight."""
    return linear.weight.detach().contiguous(), None if linear.bias is None else linear.bias.detach()


SMALLER: dict[Weights, type[HalfLinear] | type[QuantisedLinear]] = {"float16": HalfLinear, "int8": QuantisedLinear}


def turn(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> None:
    """Let every matrix be multiplied the other way round, in place."""
    replace_matrices(model, TurnedLinear)


def quantise(model: EncoderDecoder | DecoderOnly | EncoderOnly, form: Weights = "int8") -> None:
    """Replace every matrix by a smaller form of it, in place: only to decode on a CPU, from then on.

    Embeddings and norms stay as they are; logits from the embeddings' table get a smaller copy of it.
    """
    require(form in SMALLER, f"form = {form!r}: a matrix can become {' or '.join(SMALLER)}")
    kinds = {(p.device.type, p.dtype) for p in model.parameters()}
    require(
        kinds == {("cpu", torch.float32)}, f"{form} works on float32 on the CPU, not on {kinds}; load the run there"
    )
    replace_matrices(model, SMALLER[form])


def replace_matrices(model: nn.Module, form: Callable[[nn.Linear], nn.Module]) -> None:
    """Put another form of each matrix in its place."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, form(child))
