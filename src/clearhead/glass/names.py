"""Which tensors can be looked at, and what their axes mean.

A name is the path of a module of the model, "encoder.blocks.0.attention.weights"; its last word is the tensor's kind.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from clearhead.config import ModelConfig, UserError, suggest

STREAM = ("batch", "token", "channel")
PAIRS = ("batch", "head", "query", "key")
AXES: dict[str, tuple[str, ...]] = {  # in the order of computing
    "embedding": STREAM,
    "position": ("token", "channel"),
    "segment": STREAM,
    "sum": STREAM,
    "embedding_norm": STREAM,
    "normalized": STREAM,
    "norm": STREAM,
    "query": ("batch", "query", "channel"),
    "queries": ("batch", "head", "query", "channel"),
    "key": ("batch", "key", "channel"),
    "keys": ("batch", "head", "key", "channel"),
    "values": ("batch", "head", "key", "channel"),
    "mask": PAIRS,
    "scores": PAIRS,
    "weights": PAIRS,
    "head_outputs": ("batch", "head", "query", "channel"),
    "attention": STREAM,
    "cross_attention": STREAM,
    "added": STREAM,
    "attention_add_norm": STREAM,
    "cross_attention_add_norm": STREAM,
    "gate": ("batch", "token", "neuron"),
    "up": ("batch", "token", "neuron"),
    "inner": ("batch", "token", "neuron"),
    "feed_forward": STREAM,
    "feed_forward_add_norm": STREAM,
    "pooled": ("batch", "channel"),
    "dense": STREAM,
    "activated": STREAM,
    "logits": ("batch", "token", "word"),
}
ROTARY = ("part", "batch", "head", "token", "pair")  # cosines and sines


def kind_of(name: str) -> str:
    """The last word of a name."""
    return name.rpartition(".")[2]


def block_of(name: str) -> str:
    """The part of the model that a name belongs to: "encoder.blocks.0", or "encoder", "decoder", "head" outside."""
    words = name.split(".")
    return ".".join(words[:3] if words[1:2] == ["blocks"] else words[:1])


def is_listed(name: str, config: ModelConfig) -> bool:
    """Whether a module is reached, and gives a tensor of its own, not the one of a module inside it again."""
    rotated = config.position == "rotary" and ".cross_attention." not in name
    conditions = {
        "query": rotated,  # else the same numbers as `queries`, not yet cut into heads
        "key": rotated,
        "added": config.norm_order == "post",  # else that is what add & norm gives
        "norm": config.norm_order == "pre" or "_add_norm" not in name,  # else that is what add & norm gives
        "pooled": config.head != "vocabulary",
        "activated": config.head_dense,
        "logits": config.head != "embedding",
    }
    return kind_of(name) in AXES and conditions.get(kind_of(name), True)


def names_of(model: nn.Module, config: ModelConfig) -> list[str]:
    """The names of all tensors that a model can show."""
    return [name for name, _ in model.named_modules() if is_listed(name, config)]


def choose(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match one of the patterns ("encoder.*.weights"); a pattern that none matches is an error."""
    names, chosen = list(names), set[str]()
    for pattern in patterns:
        found = fnmatch.filter(names, pattern)
        if not found:
            raise unknown("model", pattern, names)
        chosen.update(found)
    return [name for name in names if name in chosen]


def unknown(where: str, name: str, names: Sequence[str]) -> UserError:
    """What to say of a name that is not there: the nearest one, else what names look like, since there are hundreds."""
    near = suggest(name, names)
    if not near.startswith("did you mean"):
        near = f"its names look like {', '.join(names[:2])}" if names else "it has none left, because it was closed"
    return UserError(f"the {where} has no {name!r}; {near}")


def axes_of(name: str, tensor: Tensor) -> tuple[str, ...]:
    """What each axis of a tensor means."""
    kind = kind_of(name)
    if kind == "position" and tensor.dim() == len(ROTARY):
        return ROTARY
    if kind == "logits" and tensor.dim() == 2:
        return ("batch", "class")
    axes = AXES[kind]
    return axes if tensor.dim() == len(axes) else tuple(axis for axis in axes if axis != "token")  # one for a sentence


def side_of(name: str, axis: str, config: ModelConfig) -> str:
    """Whose tokens an axis counts, "source" or "target"; "" for an axis that counts something else."""
    if axis not in ("token", "query", "key"):
        return ""
    reads_source = name.startswith("encoder") or (axis == "key" and ".cross_attention." in name)
    return "source" if reads_source or config.family == "encoder-only" else "target"
