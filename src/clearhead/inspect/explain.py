"""How one single number was computed: the formula of its cell, with the numbers that entered it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.config import require
from clearhead.inspect.formula import Formula, equals, number
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term
from clearhead.inspect.names import parents
from clearhead.inspect.patch import edited
from clearhead.inspect.paths import Node
from clearhead.inspect.trace import NamedTensor, Trace


@dataclass(frozen=True)
class Explanation:
    """How one cell of a tensor was computed. In a tensor that a change has replaced, `traced` is not `value`."""

    name: str
    index: tuple[int, ...]
    place: str  # in words: "head 2, query 'red', key 'car'"
    value: float  # computed again, from the tensors and parameters that enter the formula
    traced: float  # what the model computed
    changed: bool  # whether a change replaced the tensor
    computation: Computation

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the sum."""
        return self.computation.terms

    @property
    def equation(self) -> Formula:
        """Symbols = numbers = result."""
        return equals(self.computation.formula, self.computation.numbers, number(self.value))

    @property
    def text(self) -> str:
        """The equation in lines, below the name of the cell."""
        lines = [f"{self.name} at {self.place}", f"  {self.computation.formula.text}"]
        lines += [f"  = {self.computation.numbers.text}", f"  = {number(self.value).text}"]
        return "\n".join([*lines, f"  changed to {number(self.traced).text}"] if self.changed else lines)

    @property
    def mathml(self) -> str:
        """The equation as a <math> element."""
        return self.equation.math()


def explain(trace: Trace, name: str, index: Sequence[int]) -> Explanation:
    """Compute one cell again, from the traced tensors that enter its formula and the model's parameters.

    The index counts from 0 along every axis of `trace[name]`. The trace must hold the tensor and its `parents`.
    """
    named = trace.named(name)
    shape = list(named.value.shape)
    fits = len(index) == len(shape) and all(0 <= i < size for i, size in zip(index, shape, strict=True))
    require(fits, f"cell {list(index)} of {name}: its shape is {shape}; give one number for each axis, from 0")
    node = Node(name, trace.run.recipe.model)
    kind = kind_at(node)
    indices = dict(zip(named.axes, index, strict=True))
    cell = TensorCell(trace, name, indices, parents(name, node.config), kind.parameters(node))
    with edited(trace.run, trace.changes), torch.no_grad():
        computation = kind.explain(cell)
    traced = float(named.value[tuple(index)])
    changed = any(fnmatch.fnmatchcase(name, pattern) for pattern in trace.changes)
    return Explanation(name, tuple(index), place_of(named, index), computation.value, traced, changed, computation)


def place_of(named: NamedTensor, index: Sequence[int]) -> str:
    """Where a cell is, in words: head 2, query 'red', key 'car'."""
    words = []
    for axis, labels, side, i in zip(named.axes, named.labels, named.sides, index, strict=True):
        label = repr(labels[i]) if side or axis == "word" else labels[i]
        words.append(label if axis == "head" else f"{axis} {label}")
    return ", ".join(words[1:] if named.axes[0] == "batch" else words)
