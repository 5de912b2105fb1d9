"""Matrices of 8-bit whole numbers: a quarter of the memory, and on a CPU about twice the speed, for a little precision.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from clearhead.config import require
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly


class QuantisedLinear(nn.Module):
    """A matrix in int8: each of its rows is divided by its own scale and rounded to -127 ... 127.

    What is multiplied with it is rounded in the same way when it comes, with one scale for the whole tensor: to 7 bits,
    so that the sums of two products that the processor forms in 16 bits cannot overflow. Bias and result are float32.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()  # (F, D)
        scales = weight.abs().amax(1).clamp(min=1e-12) / 127  # (F,)
        with warnings.catch_warnings(action="ignore"):  # deprecated, but the only way to the kernel in torch up to 2.13
            zeros = torch.zeros_like(scales, dtype=torch.long)
            whole = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.packed = torch.ops.quantized.linear_prepack(whole, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        return torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=True)


def quantise(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> None:
    """Replace every matrix by its int8 form, in place: only to decode on a CPU, from then on.

    Embeddings and norms stay as they are; logits from the embeddings' table get an int8 copy of it.
    """
    kinds = {(p.device.type, p.dtype) for p in model.parameters()}
    require(kinds == {("cpu", torch.float32)}, f"int8 works on float32 on the CPU, not on {kinds}; load the run there")
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, QuantisedLinear(child))
