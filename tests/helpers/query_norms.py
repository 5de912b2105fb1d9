"""A tensor that clearhead does not know: models whose queries are normalized, and the one entry that describes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from clearhead.inspect.kinds import KINDS
from clearhead.inspect.kinds.kind import PagePicture
from clearhead.inspect.kinds.norm import norm_kinds
from clearhead.model.attention import Attention
from clearhead.model.norm import LayerNorm
from clearhead.runs import Run
from tiny_models import shake

QUERY_NORM = norm_kinds(
    "late_norm",
    reads=lambda node: node.beside("queries"),
    axes=("batch", "head", "query", "channel"),
    title="normalized queries",
    text="The queries of each head, brought to one scale.",
    picture=PagePicture("attention", "Normalized queries", "one scale for all"),
    replaces="queries",
)


class NormedAttention(Attention):
    """Attention that normalizes its queries."""

    late_norm: LayerNorm

    def attend(self, queries: Tensor, *others: Any, **named: Any) -> Tensor:
        return super().attend(self.late_norm(queries), *others, **named)


def with_query_norms(run: Run) -> Run:
    """The same run, with a norm on the queries of every attention."""
    weight = next(run.model.parameters())
    for module in list(run.model.modules()):
        if isinstance(module, Attention):
            module.__class__ = NormedAttention
            module.late_norm = LayerNorm(module.head_size, 1e-5).to(weight).requires_grad_(False)
            shake(module.late_norm)
    return run


@contextmanager
def described() -> Iterator[None]:
    """The entry is in the table: the one place to edit."""
    KINDS.extend(QUERY_NORM)
    try:
        yield
    finally:
        del KINDS[-len(QUERY_NORM) :]
