"""Comparing what a student's piece returns with what is expected: the same, or the first difference."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

RELATIVE_TOLERANCE = 1e-4  # smaller differences are those of rounding
ABSOLUTE_TOLERANCE = 1e-5


def same(found: Any, expected: Any) -> bool:
    """Whether two results are equal, up to rounding."""
    return not difference(found, expected)


def difference(found: Any, expected: Any) -> str:
    """Say in words where two results differ first; nothing if they are equal, up to rounding."""
    if found is None and expected is not None:
        return "it returns None: is a `return` missing?"
    if isinstance(expected, Tensor) or isinstance(found, Tensor):
        return tensor_difference(found, expected)
    if isinstance(expected, dict):
        return dict_difference(found, expected)
    if isinstance(expected, list | tuple):
        return sequence_difference(found, expected)
    if isinstance(expected, float) and isinstance(found, int | float):
        equal = math.isclose(found, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)
        return "" if equal else f"it is {found:.6g}, expected {expected:.6g}"
    return "" if found == expected else f"it is {shown(found)}, expected {shown(expected)}"


def tensor_difference(found: Any, expected: Any) -> str:
    """The first difference between two tensors: kind, shape, dtype, or a number."""
    if not isinstance(found, Tensor) or not isinstance(expected, Tensor):
        return f"it returns {kind(found)}, expected {kind(expected)}"
    if found.shape != expected.shape:
        return f"its shape is {list(found.shape)}, expected {list(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"its numbers are {found.dtype}, expected {expected.dtype}"
    wrong = ~torch.isclose(found, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True)
    if not wrong.any():
        return ""
    if not expected.dim():
        return f"it is {number(found)}, expected {number(expected)}"
    first = tuple(wrong.nonzero()[0].tolist())
    place = f"at {list(first)} it is {number(found[first])}, expected {number(expected[first])}"
    return f"{place}; {int(wrong.sum())} of {wrong.numel()} numbers differ"


def dict_difference(found: Any, expected: dict[Any, Any]) -> str:
    """The first difference between two dictionaries: a key, or the value of one."""
    if not isinstance(found, dict):
        return f"it returns {kind(found)}, expected a dict"
    for key in expected:
        if key not in found:
            return f"{shown(key)} is missing"
        if problem := difference(found[key], expected[key]):
            return f"{shown(key)}: {problem}"
    return next((f"{shown(key)} should not be there" for key in found if key not in expected), "")


def sequence_difference(found: Any, expected: list[Any] | tuple[Any, ...]) -> str:
    """The first difference between two sequences: an element, or the length."""
    if not isinstance(found, list | tuple):
        return f"it returns {kind(found)}, expected {kind(expected)}"
    plain = all(isinstance(each, int | str | bytes) for each in expected)
    if plain or len(found) != len(expected):
        whole = f"it is {shown(list(found))}, expected {shown(list(expected))}"
        return "" if list(found) == list(expected) else whole
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        if problem := difference(one, other):
            return f"result {index + 1}: {problem}"
    return ""


def kind(value: Any) -> str:
    """The type of a value, with its article."""
    name = {Tensor: "tensor", dict: "dict", type(None): "None"}.get(type(value), type(value).__name__)
    return name if value is None else f"an {name}" if name[0] in "aeiou" else f"a {name}"


def number(value: Tensor) -> str:
    """A number of a tensor, as short as possible."""
    single = value.item()
    return f"{single:.4g}" if isinstance(single, float) else str(single)


def shown(value: Any) -> str:
    """A value in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:100]}…"
