"""Which tensors of a model can be looked at, what their axes count, and which tensors each is computed from."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from torch import nn

from clearhead.config import ModelConfig, UserError, did_you_mean
from clearhead.inspect.kinds import KINDS, find_kind, kind_at
from clearhead.inspect.paths import Node, kind_of, last_block_output, sublayers_of


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


def parents(name: str, config: ModelConfig) -> tuple[str, ...]:
    """The named tensors that enter the formula of a named tensor; parameters are not among them."""
    node = Node(name, config)
    return tuple(latest(parent, config, reader=name) for parent in kind_at(node).parents(node))


def latest(name: str, config: ModelConfig, reader: str = "") -> str:
    """The tensor from which `reader` is computed: the named one, or one that replaces it, such as its norm.

    A tensor that replaces another one is computed from that one.
    """
    for kind in KINDS:
        if kind.replaces == kind_of(name):
            other = Node(Node(name, config).beside(kind.name), config)
            if kind.when(other) and not f"{reader}.".startswith(f"{other.name}."):
                return latest(other.name, config, reader)
    return name


def residual_stream(stack: str, config: ModelConfig) -> list[str]:
    """The states of a stack's residual stream, from the input of the first block to the output of the last."""
    layers = int(last_block_output(stack, config).split(".")[2]) + 1
    blocks = (f"{stack}.blocks.{number}" for number in range(layers))
    added = [f"{block}.{part}_add_norm" for block in blocks for part in sublayers_of(stack, config)]
    return [latest(f"{stack}.sum", config), *added]
