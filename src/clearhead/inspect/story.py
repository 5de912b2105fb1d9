"""The story of a tensor: what it is, how it is computed, from what, and by which lines of the installed code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clearhead.inspect.kinds import kind_at
from clearhead.inspect.kinds.kind import Code
from clearhead.inspect.names import parents
from clearhead.inspect.patch import parameters_of
from clearhead.inspect.paths import Node
from clearhead.inspect.trace import NamedTensor, Trace
from clearhead.runs import Run

PACKAGE = Path(__file__).parents[1]
COUNTED = {  # singular and plural of what an axis counts, where they are not its name and its name with an s
    "batch": ("text", "texts"),
    "part": ("cosines and sines", "cosines and sines"),
    "class": ("class", "classes"),
    "query": ("query", "queries"),
    "word": ("token of the vocabulary", "tokens of the vocabulary"),
}


@dataclass(frozen=True)
class SourceLines:
    """A function of the installed code, and those of its lines that compute a tensor."""

    file: str  # inside the package: "model/attention.py"
    function: str
    first: int  # the number of its first line in the file
    lines: tuple[str, ...]
    marked: tuple[int, ...]  # numbers of lines in the file


@dataclass(frozen=True)
class TensorStory:
    """What a tensor is, in words and formulas."""

    name: str
    title: str
    formula: str
    mathml: str
    parents: tuple[str, ...]  # names of the tensors it is computed from
    parameters: tuple[str, ...]  # names of the parameters that take part
    shape: tuple[int, ...]
    shape_in_words: str
    paragraph: str
    source: SourceLines


def story(trace: Trace, name: str) -> TensorStory:
    """The story of a tensor of a trace."""
    config = trace.run.recipe.model
    node = Node(name, config)
    kind = kind_at(node)
    formula = kind.formula_in(config)
    named = trace.named(name)
    return TensorStory(
        name,
        kind.title,
        formula.text,
        formula.math(),
        parents(name, config),
        parameters_in(trace.run, kind.parameters(node)),
        tuple(named.value.shape),
        in_words(named),
        kind.text,
        source_lines(kind.code),
    )


def parameters_in(run: Run, module: str) -> tuple[str, ...]:
    """The names of a module's parameters; none without a module."""
    return tuple(name for name in parameters_of(run) if module and name.startswith(f"{module}."))


def in_words(named: NamedTensor) -> str:
    """A shape in words: 1 text × 4 heads × 6 queries × 6 keys."""
    words = []
    for axis, size in zip(named.axes, named.value.shape, strict=True):
        one, several = COUNTED.get(axis, (axis, f"{axis}s"))
        words.append(f"{size:,} {one if size == 1 else several}")
    return " × ".join(words)


def source_lines(code: Code) -> SourceLines:
    """The lines that compute a tensor, read from the code that runs."""
    function, *beginnings = code
    file, name, first, lines = read_source(function)
    marked = [first + i for i, line in enumerate(lines) if line.strip().startswith(tuple(beginnings))]
    return SourceLines(file, name, first, lines, tuple(marked))


@cache
def read_source(function: Callable[..., Any]) -> tuple[str, str, int, tuple[str, ...]]:
    """File, name, first line and text of a function; a function outside the package has its file's name alone."""
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getfile(function))
    file = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name
    return file, function.__qualname__, first, tuple(line.rstrip("\n") for line in lines)
