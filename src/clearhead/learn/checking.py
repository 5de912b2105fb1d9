"""Checking a student's piece: the first thing that is wrong, by the name of the mistake if it is recognised."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from clearhead.learn.comparing import difference, same, shown
from clearhead.learn.exercise import Exercise, ExerciseCase, Mistake, Piece
from clearhead.learn.pieces import load_piece, load_solution, student_lines
from clearhead.learn.verdict import Verdict

NOT_WRITTEN = "not written yet"
SHAPES = "Print the shapes before that line, as in print(x.shape): what your code prints is shown here."


@dataclass(frozen=True)
class Outcome:
    """What a piece returned for a case, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None

    def equals(self, other: Outcome) -> bool:
        """Whether two pieces did the same: equal values, or the same error."""
        if self.error is None and other.error is None:
            return same(self.value, other.value)
        return (type(self.error), str(self.error)) == (type(other.error), str(other.error))


def check(exercise: Exercise, path: Path, passed: list[str] | None = None) -> Verdict:
    """Check a student's file: it loads, defines what is asked for, and computes what the project's own code does.

    Each claim is appended to `passed` as soon as it is passed.
    """
    passed = [] if passed is None else passed
    claim = f"{path.name} can be loaded"
    try:
        piece = load_piece(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Verdict(passed, claim, said(error), lines=student_lines(error, path))
    passed.append(claim)
    wanted_definitions = dict(definitions(load_solution(exercise.name)))
    for name, wanted in wanted_definitions.items():
        claim = f"it defines {name}{inspect.signature(wanted)}"
        if problem := definition_problem(piece, name, wanted):
            hint = "Keep the first line of each function as `learn start` wrote it."
            return Verdict(passed, claim, problem, hint=hint)
    passed.append(f"it defines {', '.join(name for name in wanted_definitions if '.' not in name)}")
    for case in cases_of(exercise):
        if verdict := check_case(exercise, case, piece, path, passed):
            return verdict
        passed.append(case.about)
    if exercise.gradient:
        claim = "gradients flow through it"
        first = cases_of(exercise)[0]
        missing = set(inputs_with_gradient(first, exercise.reference)) - set(inputs_with_gradient(first, piece))
        if missing:
            hint = "Numbers must stay tensors: no .item(), .tolist(), .detach(), .data, numpy or torch.no_grad()."
            return Verdict(passed, claim, f"no gradient reaches input {min(missing)}", hint=hint)
        passed.append(claim)
    return Verdict(passed)


def cases_of(exercise: Exercise) -> list[ExerciseCase]:
    """The cases of an exercise, with the same random numbers each time."""
    torch.manual_seed(0)
    return exercise.cases()


def definitions(solution: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions, classes and methods that a solution defines, by name."""
    for name, value in vars(solution).items():
        if getattr(value, "__module__", None) == solution.__name__ and callable(value):
            yield name, value
            for method, function in vars(value).items() if inspect.isclass(value) else ():
                if inspect.isfunction(function):
                    yield f"{name}.{method}", function


def definition_problem(piece: Piece, name: str, wanted: Any) -> str:
    """Say what is wrong with a definition of a piece: missing, or with other arguments."""
    found = piece
    for part in name.split("."):
        if not hasattr(found, part):
            return f"{name} is missing"
        found = getattr(found, part)
    if not callable(found):
        return f"{name} is not a function but {shown(found)}"
    ours, theirs = (list(inspect.signature(each).parameters) for each in (wanted, found))
    if ours != theirs:
        return f"{name} takes ({', '.join(theirs)}), but it is called with ({', '.join(ours)})"
    return ""


def check_case(exercise: Exercise, case: ExerciseCase, piece: Piece, path: Path, passed: list[str]) -> Verdict | None:
    """Return what is wrong in a case, or None."""
    inputs = copy.deepcopy(case.inputs)
    found = run(case, piece, inputs)
    expected = run(case, exercise.reference)
    assert expected.error is None, expected.error
    lines = [] if found.error is None else student_lines(found.error, path)
    if isinstance(found.error, NotImplementedError):
        name = lines[-3].rpartition(" in ")[2] if len(lines) >= 3 else exercise.name  # the function of the last frame
        hint = f"Open {path} and replace the line `raise NotImplementedError` by your code."
        return Verdict(passed, case.about, f"`{name}` is {NOT_WRITTEN}", hint=hint)
    if not found.equals(expected):
        problem = said(found.error) if found.error else difference(found.value, expected.value)
        mistake = recognise(exercise, found, case, piece)
        shapes = SHAPES if isinstance(found.error, RuntimeError) else ""
        if mistake is None:
            return Verdict(passed, case.about, problem, hint=shapes, lines=lines)
        return Verdict(passed, case.about, mistake.name, problem, mistake.hint, lines, mistake.name)
    if not all(same(now, before) for now, before in zip(inputs, case.inputs, strict=True) if not callable(before)):
        hint = "Assignments to x[...], += on tensors, and operations that end with _ change the input: make a copy."
        return Verdict(passed, case.about, "it changes its input in place", hint=hint)
    return None


def run(case: ExerciseCase, piece: Piece, inputs: tuple[Any, ...] | None = None) -> Outcome:
    """Return what a piece does in a case; `exit()` and other errors of the student's code are part of that.

    inputs: used instead of a copy of the case's inputs
    """
    torch.manual_seed(0)
    try:
        return Outcome(case.probe(piece, *(copy.deepcopy(case.inputs) if inputs is None else inputs)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(error=error)


def said(error: BaseException) -> str:
    """What an error means, in a few words."""
    if isinstance(error, SystemExit):
        return "your code calls exit()"
    if isinstance(error, SyntaxError):
        return "Python cannot read it"
    if isinstance(error, RecursionError):
        return "a function calls itself without end"
    return f"your code raises {type(error).__name__}"


def recognise(exercise: Exercise, found: Outcome, case: ExerciseCase, piece: Piece) -> Mistake | None:
    """Return the mistake that gives what the student's piece gives: here, and if possible in all other cases."""
    similar = []
    for mistake in exercise.mistakes:
        wrong = load_solution(exercise.name, mistake.old, mistake.new)
        if run(case, wrong).equals(found) and passes_before(exercise, case, wrong):
            similar.append((mistake, wrong))
    if len(similar) < 2:
        return similar[0][0] if similar else None

    def agreements(wrong: ModuleType) -> int:
        return sum(run(each, wrong).equals(run(each, piece)) for each in cases_of(exercise))

    return max(similar, key=lambda both: agreements(both[1]))[0]  # the first of equally good ones


def passes_before(exercise: Exercise, case: ExerciseCase, wrong: ModuleType) -> bool:
    """Whether a piece with a mistake is right in all cases before this one, as the student's piece was."""
    for each in cases_of(exercise):
        if each.about == case.about:
            return True
        if not run(each, wrong).equals(run(each, exercise.reference)):
            return False
    return True


def inputs_with_gradient(case: ExerciseCase, piece: Piece) -> list[int]:
    """The numbers of the inputs of a case, from 1, that a gradient of the result reaches."""
    inputs = copy.deepcopy(case.inputs)
    floats = {n: x for n, x in enumerate(inputs, 1) if isinstance(x, Tensor) and x.is_floating_point()}
    for tensor in floats.values():
        tensor.requires_grad_()
    results = [tensor for tensor in tensors_in(run(case, piece, inputs).value) if tensor.requires_grad]
    if not results or not floats:
        return []
    sums = [tensor.sum() for tensor in results]
    gradients = torch.autograd.grad(sums, list(floats.values()), allow_unused=True)
    return [number for number, gradient in zip(floats, gradients, strict=True) if gradient is not None]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each)
