"""How one single number came about: the formula of its cell, with the numbers that went into it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.config import require
from clearhead.glass.formula import Formula, equals, number
from clearhead.glass.names import kind_of
from clearhead.glass.patch import edited
from clearhead.glass.trace import Named, Trace
from clearhead.glass.working import Cell, Term, Working
from clearhead.glass.workings import WORKINGS


@dataclass(frozen=True)
class Explanation:
    """How one cell of a tensor was computed. A cell that was changed by hand has another value than its formula."""

    name: str
    index: tuple[int, ...]
    place: str  # its labels: "head 2, query 'red', key 'car'"
    value: float  # computed anew, from the tensors before it
    traced: float  # what the model had
    changed: bool  # whether a change put another number there
    working: Working

    @property
    def terms(self) -> tuple[Term, ...]:
        """What was added up."""
        return self.working.terms

    @property
    def equation(self) -> Formula:
        """Letters = numbers = result."""
        return equals(self.working.formula, self.working.numbers, number(self.value))

    @property
    def text(self) -> str:
        """The equation in lines, below the name of the cell."""
        lines = [f"{self.name} at {self.place}", f"  {self.working.formula.text}"]
        lines += [f"  = {self.working.numbers.text}", f"  = {number(self.value).text}"]
        return "\n".join([*lines, f"  changed to {number(self.traced).text}"] if self.changed else lines)

    @property
    def mathml(self) -> str:
        """The equation as a <math> element."""
        return self.equation.math()


def explain(trace: Trace, name: str, index: Sequence[int]) -> Explanation:
    """Compute one cell anew, from the traced tensors before it and the model's weights, and say how.

    The index counts from 0 along every axis of `trace[name]`. The trace must hold the tensor and its `parents`.
    """
    named = trace.named(name)
    shape = list(named.value.shape)
    fits = len(index) == len(shape) and all(0 <= i < size for i, size in zip(index, shape, strict=True))
    require(fits, f"cell {list(index)} of {name}: its shape is {shape}; give one number for each axis, from 0")
    cell = Cell(trace, name, dict(zip(named.axes, index, strict=True)))
    with edited(trace.run, trace.changes), torch.no_grad():
        working = WORKINGS[kind_of(name)](cell)
    traced, changed = float(named.value[tuple(index)]), any(fnmatch.fnmatchcase(name, each) for each in trace.changes)
    return Explanation(name, tuple(index), place_of(named, index), working.value, traced, changed, working)


def place_of(named: Named, index: Sequence[int]) -> str:
    """Where a cell is, in words: head 2, query 'red', key 'car'."""
    words = []
    for axis, labels, side, i in zip(named.axes, named.labels, named.sides, index, strict=True):
        label = repr(labels[i]) if side or axis == "word" else labels[i]
        words.append(label if axis == "head" else f"{axis} {label}")
    return ", ".join(words[1:] if named.axes[0] == "batch" else words)
