"""What an exercise is: cases to compare a student's piece with the project's own, and the mistakes that are recognised.

A mistake is an edit of the solution. What the edited solution computes is compared with what the student's piece
computes: if the two are equal, the student has made this mistake, however the code is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

Piece = Any  # an object with the functions and classes that an exercise asks for: a module, or a namespace


@dataclass(frozen=True)
class ExerciseCase:
    """Something that a piece is asked to compute."""

    about: str  # such as "with a causal mask"
    probe: Callable[..., Any]  # called with a piece and the inputs; returns what is compared
    inputs: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Mistake:
    """A mistake that many people make, as an edit of the solution."""

    name: str  # what is wrong, as a sentence
    hint: str  # what to think about
    old: str  # a part of the solution's text that occurs once
    new: str  # what stands there instead


class Patch(NamedTuple):
    """An attribute of the project that a student's piece takes the place of."""

    owner: Any  # a class or a module
    name: str
    replacement: Any


@dataclass(frozen=True)
class Exercise:
    """How a piece is checked and used: reference, cases and swap from exercises/NAME.py, the rest from NAME.toml."""

    name: str
    reference: Piece  # the project's own code, called as the student's is
    cases: Callable[[], list[ExerciseCase]]
    swap: Callable[[Piece], list[Patch]]  # what `learn use` replaces
    mistakes: list[Mistake]
    hints: list[str]  # from a first thought to nearly the code
    settings: list[str] = field(default_factory=list)  # of the demo that uses the piece, beyond its recipe
    decodes: bool = False  # whether it is used for decoding, not for training
    fine_tunes: bool = False  # whether `use` continues the training of a trained model
    gradient: bool = True  # whether gradients have to flow through it


def call(function: str, about: str, *inputs: Any) -> ExerciseCase:
    """The case that a function of the piece is called with these inputs."""
    return ExerciseCase(about, lambda piece, *given: getattr(piece, function)(*given), inputs)


def apply(kind: str, arguments: tuple[Any, ...], about: str, *inputs: Any) -> ExerciseCase:
    """The case that a module of the piece, a class called with `arguments`, is applied to these inputs.

    Compared are the names and shapes of its parameters, and its output after they have been filled.
    """

    def probe(piece: Piece, *given: Any) -> dict[str, Any]:
        module = getattr(piece, kind)(*arguments)
        shapes = {name: list(parameter.shape) for name, parameter in module.named_parameters()}
        return {"parameters": shapes, "output": filled(module)(*given)}

    return ExerciseCase(about, probe, inputs)


def filled(module: nn.Module) -> nn.Module:
    """Fill the parameters of a module with random numbers that depend on their names and shapes only."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return module


def borrowing(kind: type[nn.Module], module: nn.Module) -> Any:
    """An object of a student's class that has the attributes and parameters of one of the project's own modules."""
    own = kind.__new__(kind)
    own.__dict__ = module.__dict__
    return own
