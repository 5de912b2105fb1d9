"""Which tensors a tensor is computed from: the model as a graph of names."""

from __future__ import annotations

from clearhead.config import ModelConfig
from clearhead.inspect.kinds import KINDS, kind_at
from clearhead.inspect.paths import Node, kind_of, last_block_output, sublayers_of


def parents(name: str, config: ModelConfig) -> tuple[str, ...]:
    """The named tensors that enter the formula of a named tensor; parameters are not among them."""
    node = Node(name, config)
    return tuple(latest(parent, config, reader=name) for parent in kind_at(node).parents(node))


def latest(name: str, config: ModelConfig, reader: str = "") -> str:
    """The tensor that is read in place of this one: itself, or one that replaces it, such as a norm of it.

    The `reader` is the tensor that is computed from it; what replaces a tensor reads that tensor itself.
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
