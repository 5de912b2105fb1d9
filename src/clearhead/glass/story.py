"""The story of a tensor: what it is, how it is computed, from what, and by which lines of the installed code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clearhead.config import ModelConfig
from clearhead.glass.graph import parents
from clearhead.glass.names import kind_of
from clearhead.glass.patch import parameters_of
from clearhead.glass.topics import CODE, formulas, words
from clearhead.glass.trace import Named, Trace

PACKAGE = Path(__file__).parents[1]
COUNTED = {  # one, several: what an axis counts
    "batch": ("text", "texts"),
    "part": ("cosines and sines", "cosines and sines"),
    "class": ("class", "classes"),
    "query": ("query", "queries"),
}
MATRICES = {  # kind -> the modules whose weights take part, beside it or inside it
    "embedding": "embedding",
    "position": "position",
    "segment": "segment",
    "query": "query",
    "queries": "query",
    "key": "key",
    "keys": "key",
    "values": "value",
    "gate": "gate",
    "up": "up",
    "dense": "dense",
    "logits": "project",
}


@dataclass(frozen=True)
class Source:
    """A function of the installed code, and those of its lines that compute a tensor."""

    file: str  # inside the package: "model/attention.py"
    function: str
    first: int  # the number of its first line in the file
    lines: tuple[str, ...]
    marked: tuple[int, ...]  # numbers of lines in the file


@dataclass(frozen=True)
class Story:
    """All there is to say of a tensor."""

    name: str
    title: str
    formula: str
    mathml: str
    parents: tuple[str, ...]  # names of the tensors it is computed from
    parameters: tuple[str, ...]  # names of the weights that take part
    shape: tuple[int, ...]
    shape_in_words: str
    paragraph: str
    source: Source


def story(trace: Trace, name: str) -> Story:
    """The story of a tensor of a trace."""
    named, config = trace.named(name), trace.run.recipe.model
    topic = topic_of(name, config)
    formula, told = formulas(config)[topic], words()[topic]
    owner = weights_of(name, config)
    return Story(
        name,
        told["title"],
        formula.text,
        formula.math(),
        parents(name, config),
        tuple(parameter for parameter in parameters_of(trace.run) if owner and parameter.startswith(f"{owner}.")),
        tuple(named.value.shape),
        in_words(named),
        " ".join(told["paragraph"].split()),
        source_of(topic),
    )


def topic_of(name: str, config: ModelConfig) -> str:
    """Which of the topics a tensor belongs to, in a model of these settings."""
    kind = kind_of(name)
    if kind.endswith("_add_norm"):
        return f"add_norm.{config.norm_order}"
    if kind in ("queries", "keys", "values") and ".cross_attention." in name:
        return f"{kind}.cross"
    if kind in ("queries", "keys") and config.position == "rotary":
        return f"{kind}.rotary"
    if kind == "mask" and name.startswith("decoder") and ".cross_attention." not in name:
        return "mask.causal"
    variants = {
        "embedding": "" if config.scale_embedding else ".plain",
        "position": f".{config.position}",
        "normalized": f".{config.norm}",
        "norm": f".{config.norm}",
        "inner": ".gelu" if config.activation == "gelu-tanh" else f".{config.activation}",
        "pooled": f".{config.pool}",
        "logits": ".classes" if config.head == "classes" else "",
    }
    kind = "norm" if kind == "embedding_norm" else kind
    return kind + variants.get(kind, "")


def weights_of(name: str, config: ModelConfig) -> str:
    """The module whose weights enter the formula of a tensor; "" if none do."""
    kind, above = kind_of(name), name.rpartition(".")[0]
    if kind.endswith("attention"):
        return f"{name}.out"
    if kind == "feed_forward":
        return f"{name}.down"
    if kind.endswith("_add_norm"):
        return f"{name}.norm" if config.norm_order == "post" else ""
    if kind in ("norm", "embedding_norm"):
        return name
    return f"{above}.{MATRICES[kind]}" if kind in MATRICES else ""


def in_words(named: Named) -> str:
    """A shape in words: 1 text × 4 heads × 6 queries × 6 keys."""
    words = []
    for axis, size in zip(named.axes, named.value.shape, strict=True):
        one, several = COUNTED.get(axis, (axis, f"{axis}s"))
        words.append(f"{size:,} {one if size == 1 else several}")
    return " × ".join(words)


def source_of(topic: str) -> Source:
    """The lines that compute a tensor, from the code that runs."""
    function, *beginnings = CODE[topic]
    file, name, first, lines = read_source(function)
    marked = [first + i for i, line in enumerate(lines) if line.strip().startswith(tuple(beginnings))]
    return Source(file, name, first, lines, tuple(marked))


@cache
def read_source(function: Callable[..., Any]) -> tuple[str, str, int, tuple[str, ...]]:
    """File, name, first line and text of a function."""
    lines, first = inspect.getsourcelines(function)
    file = Path(inspect.getfile(function)).relative_to(PACKAGE)
    return file.as_posix(), function.__qualname__, first, tuple(line.rstrip("\n") for line in lines)
