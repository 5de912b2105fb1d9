"""What an exercise is: cases to compare a student's piece with the project's own, and the mistakes that are recognised.

A mistake is an edit of the solution. What the edited solution computes is compared with what the student's piece
computes: if the two are equal, the student has made this mistake, however the code is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

Piece = Any  # an object with the functions and classes that an exercise asks for: a module, or a namespace


@dataclass(frozen=True)
class Case:
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
    """How a piece is checked and used."""

    name: str
    reference: Piece  # the project's own code, called as the student's is
    cases: Callable[[], list[Case]]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]  # from a first thought to nearly the code
    swap: Callable[[Piece], list[Patch]]  # what `learn use` replaces
    settings: str = ""  # of the demo that uses the piece, beyond its recipe
    decodes: bool = False  # whether it is used for decoding, not for training
    fine_tunes: bool = False  # whether it is used to train a model further that is trained already
    gradient: bool = True  # whether gradients have to flow through it


def call(function: str, about: str, *inputs: Any) -> Case:
    """The case that a function of the piece is called with these inputs."""
    return Case(about, lambda piece, *given: getattr(piece, function)(*given), inputs)


def filled(module: nn.Module) -> nn.Module:
    """Fill the parameters of a module with random numbers that depend on their names and shapes only."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return module


def apply_module(module: nn.Module, *inputs: Any) -> dict[str, Any]:
    """Return the names and shapes of a module's parameters, and its output after they have been filled."""
    shapes = {name: list(parameter.shape) for name, parameter in module.named_parameters()}
    return {"parameters": shapes, "output": filled(module)(*inputs)}


def borrowing(kind: type[nn.Module], module: nn.Module) -> Any:
    """An object of a student's class that has the attributes and parameters of one of the project's own modules."""
    own = kind.__new__(kind)
    own.__dict__ = module.__dict__
    return own
