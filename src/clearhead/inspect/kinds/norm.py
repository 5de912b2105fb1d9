"""Norms, and the residual connections around the sublayers: add & norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, at, call, equals, fraction, number, power, root, row, signed, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, computed_sum, explain_sum
from clearhead.inspect.kinds.kind import STREAM, Kind, always, described, no_parameters, words_of
from clearhead.inspect.kinds.letters import epsilon, n, x, y
from clearhead.inspect.paths import SUBLAYERS, Node, kind_of, last_block_output, stream_before
from clearhead.model.block import AddNorm
from clearhead.model.norm import LayerNorm, RMSNorm


def explain_normalized(cell: TensorCell) -> Computation:
    """A channel minus the token's mean, over its standard deviation; RMSNorm subtracts no mean."""
    norm = cell.module(cell.owner)
    assert isinstance(norm, LayerNorm | RMSNorm)
    vector = cell.head_vector(cell.parents[0]) if "head" in cell.index else cell.vector(cell.parents[0])
    value = vector[cell.index["channel"]].item()
    centred = isinstance(norm, LayerNorm)
    mean = vector.mean().item() if centred else 0.0
    variance = ((vector - mean) ** 2).mean().item()
    above = at(symbol("x"), "c")
    numbers_above = number(value)
    if centred:
        above = row(above, "−", symbol("mean"))
        numbers_above = row(numbers_above, "−", signed(mean))
    below = root(row(symbol("variance" if centred else "mean of x²"), "+", epsilon))
    numbers_below = root(row(number(variance), "+", number(norm.epsilon)))
    return Computation(
        fraction(above, below),
        fraction(numbers_above, numbers_below),
        (value - mean) / math.sqrt(variance + norm.epsilon),
        (Term("x", (value,)), Term("mean", (-mean,))),
    )


def explain_norm(cell: TensorCell) -> Computation:
    """The normalized channel times its learned gain, plus its learned bias if the norm has one."""
    norm = cell.module(cell.parameters)
    assert isinstance(norm, LayerNorm | RMSNorm)
    channel = cell.index["channel"]
    terms = [Term("gain", (norm.weight[channel].item(), cell.vector(cell.parents[0])[channel].item()))]
    formula = row(at(symbol("γ"), "c"), "·", at(symbol("n"), "c"))
    if isinstance(norm, LayerNorm) and norm.bias is not None:
        terms.append(Term("bias", (norm.bias[channel].item(),)))
        formula = row(formula, "+", at(symbol("β"), "c"))
    return computed_sum(formula, terms)


def norm_formula(config: ModelConfig) -> Formula:
    """The gain times the normalized vector, plus a bias if a LayerNorm has one."""
    scaled = row(symbol("γ"), "·", n)
    return equals(y, row(scaled, "+", symbol("β")) if config.norm == "layer" and config.bias else scaled)


def norm_kinds(
    name: str,
    reads: Callable[[Node], str],
    when: Callable[[Node], bool] = always,
    axes: tuple[str, ...] = STREAM,
    **fields: Any,
) -> tuple[Kind, ...]:
    """The entries of a norm with this name and of the normalized tensor inside it, each as LayerNorm and as RMSNorm.

    `reads` gives the tensor that the norm normalizes. Other fields of `Kind` are those of the norm.
    """

    def entry(kind: Kind, listed: Callable[[Node], bool], **changes: Any) -> Kind:
        return replace(kind, when=lambda node: node.config.norm == kind.variant and listed(node), axes=axes, **changes)

    def is_inside(node: Node) -> bool:
        return kind_of(node.owner) == name

    def parents_inside(node: Node) -> tuple[str, ...]:
        return (reads(replace(node, name=node.owner)),)

    return (
        *(entry(kind, is_inside, parents=parents_inside) for kind in (LAYER_NORMALIZED, RMS_NORMALIZED)),
        *(entry(kind, when, name=name, **fields) for kind in (LAYER_NORM, RMS_NORM)),
    )


LAYER_NORMALIZED = described(
    "normalized",
    "layer",
    axes=STREAM,
    formula=equals(n, fraction(row(x, "−", symbol("mean")), root(row(symbol("variance"), "+", epsilon)))),
    code=(LayerNorm.forward, "mean = ", "variance = ", "own = "),
    explain=explain_normalized,
)
RMS_NORMALIZED = described(
    "normalized",
    "rms",
    like=LAYER_NORMALIZED,
    formula=equals(n, fraction(x, root(row(call("mean", power(x, symbol("2"))), "+", epsilon)))),
    code=(RMSNorm.forward, "own = "),
)
LAYER_NORM = described(
    "norm",
    "layer",
    axes=STREAM,
    formula=norm_formula,
    code=(LayerNorm.forward, "return F.layer_norm"),
    parents=lambda node: (node.inside("normalized"),),
    parameters=lambda node: node.name,
    explain=explain_norm,
)
RMS_NORM = described("norm", "rms", like=LAYER_NORM, code=(RMSNorm.forward, "return F.rms_norm"))


def norm_input(node: Node) -> str:
    """What a module called `norm` normalizes: in an add & norm, at the end of a stack, or in the head."""
    if node.in_add_norm:
        return node.beside("added") if node.is_post_norm else stream_before(node.owner, node.config)
    return "head.activated" if node.stack == "head" else last_block_output(node.stack, node.config)


def residual_sum(node: Node) -> tuple[str, ...]:
    """The stream before an add & norm, and the output of its sublayer."""
    add_norm = node.name if node.kind.endswith("_add_norm") else node.owner
    return stream_before(add_norm, node.config), add_norm.removesuffix("_add_norm")


RESULT = row(x, "+", call("sublayer", x))
ADDED = described(
    "added",
    when=lambda node: node.is_post_norm,  # with pre-norm the same numbers as the add & norm itself
    axes=STREAM,
    formula=equals(y, RESULT),
    code=(AddNorm.forward, "return self.norm(self.added"),
    parents=residual_sum,
    explain=explain_sum,
    in_logit=True,
)
POST_NORM = described(
    "add_norm",
    "post",
    when=lambda node: node.is_post_norm,
    axes=STREAM,
    formula=equals(y, call("norm", RESULT)),
    code=(AddNorm.forward, "return self.norm(self.added"),
    parents=lambda node: (node.inside("norm.normalized"),),
    parameters=lambda node: node.inside("norm"),
    explain=explain_norm,
    in_stream=True,
    in_logit=True,
)
PRE_NORM = described(
    "add_norm",
    "pre",
    like=POST_NORM,
    when=lambda node: not node.is_post_norm,
    formula=equals(y, row(x, "+", call("sublayer", call("norm", x)))),
    code=(AddNorm.forward, "if self.norm_first", "return self.added"),
    parents=residual_sum,
    parameters=no_parameters,
    explain=explain_sum,
)
KINDS = (
    *norm_kinds(
        "embedding_norm",
        reads=lambda node: node.beside("sum"),
        when=lambda node: node.config.embedding_norm,
        replaces="sum",
        in_stream=True,
        **words_of("embedding_norm"),
    ),
    # inside a post-norm add & norm it gives the same numbers as the add & norm itself
    *norm_kinds("norm", norm_input, when=lambda node: not (node.in_add_norm and node.is_post_norm)),
    ADDED,
    *(replace(kind, name=f"{sublayer}_add_norm") for sublayer in SUBLAYERS for kind in (POST_NORM, PRE_NORM)),
)
