"""Operations of torch without a public name: each behind one function, with a fallback that computes the same.

Another version of torch, or a build for another processor, may lack any of them.

Shapes: D inputs, F outputs of a matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

Product = Callable[[Tensor], Tensor]  # (..., D) -> (..., F)
MISSING = (AttributeError, RuntimeError, NotImplementedError)  # no such operation, or not on this processor


def copy_all(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy each source into its target, on a GPU in few kernels."""
    try:
        torch._foreach_copy_(targets, sources)
    except AttributeError:
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)


def scale_and_add(targets: list[Tensor], keep: float | Tensor, updates: list[Tensor], factor: float) -> None:
    """Replace each target by `keep` times itself plus `factor` times its update, on a GPU in few kernels."""
    try:
        torch._foreach_mul_(targets, keep)
        torch._foreach_add_(targets, updates, alpha=factor)
    except AttributeError:
        for target, update in zip(targets, updates, strict=True):
            target.mul_(keep).add_(update, alpha=factor)


def processor_has(feature: str) -> bool:
    """Whether the processor has these units: vnni, amx_tile, avx512_bf16; False if torch cannot tell."""
    try:
        return bool(getattr(torch.cpu, f"_is_{feature}_supported")())
    except AttributeError:
        return False


@cache
def has_reordered_product() -> bool:
    """Whether this torch can multiply by a matrix in oneDNN's order."""
    x = torch.arange(16.0).view(2, 8)
    try:
        return torch.equal(reordered_product(torch.eye(8), None)(x), x)
    except MISSING:
        return False


def reordered_product(weight: Tensor, bias: Tensor | None) -> Product:
    """X Wᵀ + b with a copy of the weight (F, D) in oneDNN's order, in float32 or bfloat16."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    multiply = torch.ops.mkldnn._linear_pointwise
    return lambda x: multiply(x, packed, bias, "none", [], "")


def float16_product(weight: Tensor, bias: Tensor | None) -> Product:
    """X Wᵀ + b with the weight (F, D) in float16 and sums in float32. Weights above 65504 become 65504."""
    try:
        packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        multiply = torch.ops.quantized.linear_dynamic_fp16
    except MISSING:
        half = weight.clamp(-65504, 65504).half()
        return lambda x: F.linear(x, half.float(), bias)
    return lambda x: multiply(x, packed)


def int8_product(weight: Tensor, scales: Tensor, bias: Tensor | None) -> Product:
    """X Wᵀ + b with the weight (F, D) in int8, times the scale of each row (F,); x is rounded to int8 as well.

    x has one scale for the whole tensor. Processors without VNNI form the sums of two products in 16 bits: there x has
    7 bits, so that these cannot overflow. The fallback does not round x.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # deprecated, but the only way to the kernel in torch up to 2.13
            zeros = torch.zeros_like(scales, dtype=torch.long)
            quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        with int8_engine():
            packed = torch.ops.quantized.linear_prepack(quantised, bias)
        multiply = torch.ops.quantized.linear_dynamic
    except MISSING:
        rounded = (weight / scales[:, None]).round().to(torch.int8)
        return lambda x: F.linear(x, rounded.to(x.dtype) * scales[:, None], bias)
    seven_bits = not processor_has("vnni")
    return lambda x: multiply(x, packed, reduce_range=seven_bits)


@contextmanager
def int8_engine() -> Iterator[None]:
    """A context in which matrices are packed for the fastest kernels: only those of oneDNN use AMX."""
    usual = torch.backends.quantized.engine
    if processor_has("amx_tile"):
        torch.backends.quantized.engine = "onednn"
    try:
        yield
    finally:
        torch.backends.quantized.engine = usual
