"""The way to one number: its place, and the sum it comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from torch import Tensor, nn

from clearhead.config import ModelConfig, UserError
from clearhead.glass.formula import Formula, at, number, row, signed, symbol, total
from clearhead.glass.graph import parents
from clearhead.glass.names import axes_of
from clearhead.glass.trace import Trace

SHOWN = 3  # terms of a long sum that are written out


class Term(NamedTuple):
    """One term of a sum: its factors are multiplied."""

    label: str  # where it comes from: a token, a channel, a neuron
    factors: tuple[float, ...]

    @property
    def value(self) -> float:
        """What it adds."""
        return math.prod(self.factors)


class Working(NamedTuple):
    """The way to a number."""

    formula: Formula  # in letters
    numbers: Formula  # the same with numbers
    value: float
    terms: tuple[Term, ...]  # all terms of the sum in it


@dataclass(frozen=True)
class Cell:
    """A place in a tensor of a trace, and the way to what it was computed from."""

    trace: Trace
    name: str
    place: dict[str, int]  # axis -> index

    @cached_property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.trace.run.recipe.model

    @cached_property
    def parents(self) -> tuple[str, ...]:
        """The tensors that enter the formula."""
        return parents(self.name, self.config)

    @property
    def above(self) -> str:
        """The module that the tensor belongs to."""
        return self.name.rpartition(".")[0]

    @property
    def token(self) -> int:
        """The place in the text; of a vector that stands for the whole text, 0."""
        return next((self.place[axis] for axis in ("token", "query", "key") if axis in self.place), 0)

    def part(self, name: str, **place: int) -> Tensor:
        """The numbers of another tensor at a place; axes that are not named stay whole."""
        value = self.trace[name]
        axes = axes_of(name, value)
        return value[tuple(place.get(axis, 0 if axis == "batch" else slice(None)) for axis in axes)].double()

    def vector(self, name: str) -> Tensor:
        """What another tensor says of this token."""
        return self.part(name, token=self.token, query=self.token, key=self.token)

    def module(self, name: str) -> nn.Module:
        """A module of the model."""
        return self.trace.run.model.get_submodule(name)


def total_of(terms: Sequence[Term]) -> Formula:
    """A sum with its first terms written out."""
    parts: list[Formula | str] = []
    for term in terms[:SHOWN]:
        digits = 3 if len(term.factors) > 1 else 4
        first, *others = term.factors
        parts += ["+", signed(first, digits)] if parts else [number(first, digits)]
        parts += [part for factor in others for part in ("·", signed(factor, digits))]
    if len(terms) > SHOWN:
        parts += ["+", symbol(f"… {len(terms) - SHOWN} more")]
    return row(*parts)


def products(left: Tensor, right: Tensor, labels: Sequence[str]) -> tuple[Term, ...]:
    """The terms of a dot product."""
    pairs = zip(labels, left.tolist(), right.tolist(), strict=True)
    return tuple(Term(label, (first, second)) for label, first, second in pairs)


def counted(word: str, count: int) -> list[str]:
    """Labels: channel 0, channel 1."""
    return [f"{word} {n}" for n in range(count)]


def plain(matrix: nn.Module | None, name: str) -> nn.Linear:
    """A matrix of plain numbers, refused if it is another thing."""
    if isinstance(matrix, nn.Linear):
        return matrix
    raise UserError(f"the numbers of {name} are not plain ones any more; open the run with its weights in float32")


def linear(cell: Cell, matrix: str, output: int, inputs: Tensor, labels: Sequence[str]) -> Working:
    """One row of a matrix times the inputs, and perhaps a bias."""
    module = plain(cell.module(matrix), matrix)
    terms = products(module.weight[output].double(), inputs, labels)
    weight, bias = at(symbol("W"), str(output), "c"), at(symbol("b"), str(output))
    formula, numbers = total("c", row(weight, "·", at(symbol("x"), "c"))), total_of(terms)
    if module.bias is not None:
        shift = float(module.bias[output])
        formula, numbers = row(formula, "+", bias), row(numbers, "+", signed(shift, 3))
        terms = (*terms, Term("bias", (shift,)))
    return Working(formula, numbers, sum(term.value for term in terms), terms)
