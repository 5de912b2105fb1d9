"""One cell of a tensor, and the computation that gives its number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor, nn

from clearhead.config import ModelConfig, UserError
from clearhead.inspect.formula import Formula, at, number, row, signed, symbol, total
from clearhead.inspect.paths import kind_of

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace

WRITTEN_OUT = 3  # terms of a long sum


class Term(NamedTuple):
    """One term of a sum, as a product of factors."""

    label: str  # where it comes from: a token, a channel, a neuron
    factors: tuple[float, ...]

    @property
    def value(self) -> float:
        """The product of the factors."""
        return math.prod(self.factors)


class Computation(NamedTuple):
    """How a number is computed."""

    formula: Formula  # with symbols
    numbers: Formula  # the formula with numbers
    value: float
    terms: tuple[Term, ...]  # all terms of the sum in it


@dataclass(frozen=True)
class TensorCell:
    """A cell of a traced tensor, with access to all that it is computed from."""

    trace: Trace
    name: str
    index: dict[str, int]  # axis -> index
    parents: tuple[str, ...]  # the tensors that enter the formula
    parameters: str  # the module whose parameters enter it; "": none

    @property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.trace.run.recipe.model

    @property
    def owner(self) -> str:
        """The module that the tensor belongs to."""
        return self.name.rpartition(".")[0]

    @property
    def token(self) -> int:
        """The position in the text; 0 for a vector that stands for the whole text."""
        return next((self.index[axis] for axis in ("token", "query", "key") if axis in self.index), 0)

    @property
    def last_index(self) -> int:
        """The index along the last axis."""
        return list(self.index.values())[-1]

    def part(self, name: str, **index: int) -> Tensor:
        """A part of another tensor; axes without an index stay whole."""
        axes = self.trace.axes(name)
        where = tuple(index.get(axis, 0 if axis == "batch" else slice(None)) for axis in axes)
        return self.trace[name][where].double()

    def vector(self, name: str) -> Tensor:
        """Another tensor at the position of this cell, and in its head if both have heads."""
        heads = {"head": self.index["head"]} if "head" in self.index else {}
        return self.part(name, token=self.token, query=self.token, key=self.token, **heads)

    def head_vector(self, name: str) -> Tensor:
        """The channels of this cell's head in another tensor, which may have all heads side by side."""
        heads = self.vector(name).view(-1, self.config.head_size)
        return heads[self.index["head"] if len(heads) > 1 else 0]

    def module(self, name: str) -> nn.Module:
        """A module of the model."""
        return self.trace.run.model.get_submodule(name)


def sum_of(terms: Sequence[Term]) -> Formula:
    """A sum with its first terms written out."""
    parts: list[Formula | str] = []
    for term in terms[:WRITTEN_OUT]:
        digits = 3 if len(term.factors) > 1 else 4
        first, *others = term.factors
        parts += ["+", signed(first, digits)] if parts else [number(first, digits)]
        parts += [part for factor in others for part in ("·", signed(factor, digits))]
    if len(terms) > WRITTEN_OUT:
        parts += ["+", symbol(f"… {len(terms) - WRITTEN_OUT} more")]
    return row(*parts)


def computed_sum(formula: Formula, terms: Sequence[Term]) -> Computation:
    """The computation of a sum of these terms."""
    return Computation(formula, sum_of(terms), total_value(terms), tuple(terms))


def total_value(terms: Sequence[Term]) -> float:
    """The sum of all terms."""
    return sum(term.value for term in terms)


def products(left: Tensor, right: Tensor, labels: Sequence[str]) -> tuple[Term, ...]:
    """The terms of a dot product."""
    pairs = zip(labels, left.tolist(), right.tolist(), strict=True)
    return tuple(Term(label, (first, second)) for label, first, second in pairs)


def plain_matrix(matrix: nn.Module | None, name: str) -> nn.Linear:
    """A matrix in floating point; quantised or packed ones are refused."""
    if isinstance(matrix, nn.Linear):
        return matrix
    raise UserError(f"{name} is packed or quantised; open the run with its weights in float32 to look inside")


def explain_linear(cell: TensorCell, output: int, inputs: Tensor, labels: Sequence[str]) -> Computation:
    """One row of the cell's matrix times the inputs, plus the bias if there is one."""
    module = plain_matrix(cell.module(cell.parameters), cell.parameters)
    terms = products(module.weight[output].double(), inputs, labels)
    formula = total("c", row(at(symbol("W"), str(output), "c"), "·", at(symbol("x"), "c")))
    numbers = sum_of(terms)
    if module.bias is not None:
        bias = float(module.bias[output])
        formula = row(formula, "+", at(symbol("b"), str(output)))
        numbers = row(numbers, "+", signed(bias, 3))
        terms = (*terms, Term("bias", (bias,)))
    return Computation(formula, numbers, total_value(terms), terms)


def explain_matrix(cell: TensorCell) -> Computation:
    """A cell of matrix times parent; with heads, the matrix has the rows of one head after the other."""
    [parent] = cell.parents
    inputs = cell.vector(parent)
    output = cell.index.get("head", 0) * cell.config.head_size + cell.last_index
    axis = cell.trace.axes(parent)[-1]
    return explain_linear(cell, output, inputs, [f"{axis} {number}" for number in range(len(inputs))])


def explain_sum(cell: TensorCell) -> Computation:
    """The sum of the parents."""
    terms = [Term(parent, (cell.vector(parent)[cell.index["channel"]].item(),)) for parent in cell.parents]
    return computed_sum(added(cell.parents), terms)


def added(names: Sequence[str]) -> Formula:
    """The sum of tensors by the last words of their names: embedding + position."""
    first, *others = (symbol(kind_of(name)) for name in names)
    return row(first, *(part for other in others for part in ("+", other)))
