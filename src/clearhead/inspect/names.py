"""Which tensors of a model can be looked at, and what their axes count."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from torch import nn

from clearhead.config import ModelConfig, UserError, did_you_mean
from clearhead.inspect.kinds import find_kind, kind_at
from clearhead.inspect.paths import Node


def names_of(model: nn.Module, config: ModelConfig) -> list[str]:
    """The names of all tensors that a model can show."""
    return [name for name, _ in model.named_modules() if find_kind(Node(name, config))]


def choose(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match one of the patterns ("encoder.*.weights"); a pattern that matches none is an error."""
    names = list(names)
    chosen = set[str]()
    for pattern in patterns:
        found = fnmatch.filter(names, pattern)
        if not found:
            raise unknown("model", pattern, names)
        chosen.update(found)
    return [name for name in names if name in chosen]


def unknown(where: str, name: str, names: Sequence[str]) -> UserError:
    """The error for a name that does not exist, with the nearest name, or examples: there are hundreds of names."""
    examples = f"its names look like {', '.join(names[:2])}" if names else "it has none left, because it was closed"
    return UserError(f"the {where} has no {name!r}; {did_you_mean(name, names) or examples}")


def axes_of(name: str, dimensions: int, config: ModelConfig) -> tuple[str, ...]:
    """What each axis of a tensor counts; "token" is left out where there is one vector for the whole text."""
    axes = kind_at(Node(name, config)).axes
    return axes if dimensions == len(axes) else tuple(axis for axis in axes if axis != "token")


def side_of(name: str, axis: str, config: ModelConfig) -> str:
    """Which text's tokens an axis counts, "source" or "target"; "" for an axis that counts something else."""
    if axis not in ("token", "query", "key"):
        return ""
    reads_source = name.startswith("encoder") or (axis == "key" and Node(name, config).in_cross_attention)
    return "source" if reads_source or config.family == "encoder-only" else "target"
