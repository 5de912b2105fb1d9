"""Every kind of tensor, described in one place: axes, parents, formula, code, words, and how one cell is computed."""

from __future__ import annotations

from clearhead.inspect.kinds import attention, embedding, feed_forward, head, norm
from clearhead.inspect.kinds.kind import Kind
from clearhead.inspect.paths import Node

KINDS: list[Kind] = [*embedding.KINDS, *norm.KINDS, *attention.KINDS, *feed_forward.KINDS, *head.KINDS]


def find_kind(node: Node) -> Kind | None:
    """The entry that describes a tensor; None for a module that gives no tensor of its own."""
    name = node.kind  # found once: names of a model are looked up by the hundred
    return next((kind for kind in KINDS if kind.name == name and kind.when(node)), None)


def kind_at(node: Node) -> Kind:
    """The entry of a tensor that is listed."""
    kind = find_kind(node)
    assert kind is not None, f"{node.name}: no entry describes it"
    return kind
