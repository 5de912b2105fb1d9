"""Norms, and the residual connections around the sublayers: add & norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, at, call, equals, fraction, number, power, root, row, signed, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_sum, sum_of, total_value
from clearhead.inspect.kinds.kind import STREAM, Definition, Kind, PagePicture, always, no_parameters
from clearhead.inspect.kinds.letters import epsilon, n, x, y
from clearhead.inspect.paths import Node, kind_of, last_block_output, stream_before
from clearhead.model.block import AddNorm
from clearhead.model.norm import LayerNorm, RMSNorm


def explain_normalized(cell: TensorCell) -> Computation:
    """A channel minus the token's mean, over its standard deviation; RMSNorm subtracts no mean."""
    return explain_normalized_vector(cell, cell.vector(cell.parents[0]))


def explain_normalized_head(cell: TensorCell) -> Computation:
    """The same for the channels of one head, of a tensor that has all heads side by side."""
    return explain_normalized_vector(
        cell, cell.vector(cell.parents[0]).view(-1, cell.config.head_size)[cell.index["head"]]
    )


def explain_normalized_vector(cell: TensorCell, vector: Tensor) -> Computation:
    """The same for a vector."""
    norm = cell.module(cell.owner)
    assert isinstance(norm, LayerNorm | RMSNorm)
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
    norm = cell.module(cell.parents[0].removesuffix(".normalized"))
    assert isinstance(norm, LayerNorm | RMSNorm)
    channel = cell.index["channel"]
    terms = [Term("gain", (norm.weight[channel].item(), cell.vector(cell.parents[0])[channel].item()))]
    formula = row(at(symbol("γ"), "c"), "·", at(symbol("n"), "c"))
    if isinstance(norm, LayerNorm) and norm.bias is not None:
        terms.append(Term("bias", (norm.bias[channel].item(),)))
        formula = row(formula, "+", at(symbol("β"), "c"))
    return Computation(formula, sum_of(terms), total_value(terms), tuple(terms))


def norm_formula(config: ModelConfig) -> Formula:
    """The gain times the normalized vector, plus a bias if a LayerNorm has one."""
    scaled = row(symbol("γ"), "·", n)
    return equals(y, row(scaled, "+", symbol("β")) if config.norm == "layer" and config.bias else scaled)


def norm_kinds(
    name: str,
    reads: Callable[[Node], str],
    when: Callable[[Node], bool] = always,
    axes: tuple[str, ...] = STREAM,
    inside: Callable[[TensorCell], Computation] = explain_normalized,
    **fields: Any,
) -> tuple[Kind, ...]:
    """The entries of a norm with this name and of the normalized tensor inside it, each as LayerNorm and as RMSNorm.

    `reads` gives the tensor that the norm normalizes, `inside` explains a cell of the normalized one. Other fields of
    `Kind` are those of the norm.
    """

    def entry(kind: Kind, listed: Callable[[Node], bool], **changes: Any) -> Kind:
        return replace(kind, when=lambda node: node.config.norm == kind.variant and listed(node), axes=axes, **changes)

    def is_inside(node: Node) -> bool:
        return kind_of(node.owner) == name

    def parents_inside(node: Node) -> tuple[str, ...]:
        return (reads(replace(node, name=node.owner)),)

    return (
        *(entry(kind, is_inside, parents=parents_inside, explain=inside) for kind in NORMALIZED),
        *(entry(kind, when, name=name, **fields) for kind in NORM),
    )


LAYER_NORMALIZED = Kind(
    name="normalized",
    variant="layer",
    axes=STREAM,
    title="mean 0, standard deviation 1",
    text="For each token separately: the mean over the channels is subtracted, and the rest is divided by the square "
    "root of the variance plus a small ε. The variance is a sum of squares over d_model, not over d_model − 1.",
    formula=equals(n, fraction(row(x, "−", symbol("mean")), root(row(symbol("variance"), "+", epsilon)))),
    code=(LayerNorm.forward, "mean = ", "variance = ", "own = "),
    explain=explain_normalized,
    picture=PagePicture("", "normalized: mean 0, standard deviation 1"),
)
NORMALIZED = (
    LAYER_NORMALIZED,
    replace(
        LAYER_NORMALIZED,
        variant="rms",
        title="root mean square 1",
        text="For each token separately: all channels are divided by the square root of the mean of their squares. "
        "Unlike LayerNorm, no mean is subtracted.",
        formula=equals(n, fraction(x, root(row(call("mean", power(x, symbol("2"))), "+", epsilon)))),
        code=(RMSNorm.forward, "own = "),
        picture=PagePicture("", "normalized: root mean square 1"),
    ),
)
LAYER_NORM = Kind(
    name="norm",
    variant="layer",
    axes=STREAM,
    title="LayerNorm",
    text="The normalized vector times a learned gain for each channel, plus a learned bias unless biases are switched "
    "off, so that each channel can have the scale that suits the next layer.",
    formula=norm_formula,
    code=(LayerNorm.forward, "return F.layer_norm"),
    parents=lambda node: (node.inside("normalized"),),
    parameters=lambda node: node.name,
    explain=explain_norm,
    picture=PagePicture("", "times gain, plus bias: input of the sublayer"),
    definition=Definition(
        "Layer norm",
        "Brings each token's vector to mean 0 and standard deviation 1, then applies a learned gain and bias.",
    ),
)
NORM = (
    LAYER_NORM,
    replace(
        LAYER_NORM,
        variant="rms",
        title="RMSNorm",
        text="The normalized vector times a learned gain for each channel, so that each channel can have the scale "
        "that suits the next layer.",
        code=(RMSNorm.forward, "return F.rms_norm"),
        definition=Definition(
            "RMS norm", "Brings each token's vector to root mean square 1, then applies a learned gain."
        ),
    ),
)


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
ADDED = Kind(
    name="added",
    when=lambda node: node.is_post_norm,  # with pre-norm the same numbers as the add & norm itself
    axes=STREAM,
    title="add",
    text="The residual connection: the output of the sublayer is added to the stream, so that no information is "
    "replaced and gradients have a direct path back. The paper normalizes after this sum.",
    formula=equals(y, RESULT),
    code=(AddNorm.forward, "return self.norm(self.added"),
    parents=residual_sum,
    explain=explain_sum,
    picture=PagePicture("", "x + f(x)"),
    in_logit=True,
)
POST_NORM = Kind(
    name="attention_add_norm",
    variant="post",
    when=lambda node: node.is_post_norm,
    axes=STREAM,
    title="add & norm",
    text="The sum of the stream and the output of the sublayer, normalized, with a learned gain and bias for each "
    "channel. This order is called post-norm, and it is the paper's.",
    formula=equals(y, call("norm", RESULT)),
    code=(AddNorm.forward, "return self.norm(self.added"),
    parents=lambda node: (node.inside("norm.normalized"),),
    parameters=lambda node: node.inside("norm"),
    explain=explain_norm,
    picture=PagePicture("addnorm", "times gain, plus bias: the stream after"),
    in_stream=True,
    in_logit=True,
)
PRE_NORM = replace(
    POST_NORM,
    variant="pre",
    when=lambda node: not node.is_post_norm,
    title="add",
    text="The output of the sublayer is added to the stream. Unlike the paper's, this model is pre-norm: the sublayer "
    "reads a normalized copy, and the stream itself is normalized only once, at the end of the stack.",
    formula=equals(y, row(x, "+", call("sublayer", call("norm", x)))),
    code=(AddNorm.forward, "if self.norm_first", "return self.added"),
    parents=residual_sum,
    parameters=no_parameters,
    explain=explain_sum,
    picture=PagePicture("addnorm", "x + f(norm(x)): the stream after"),
)
KINDS = (
    *norm_kinds(
        "embedding_norm",
        reads=lambda node: node.beside("sum"),
        when=lambda node: node.config.embedding_norm,
        replaces="sum",
        in_stream=True,
        picture=PagePicture("embedding"),
    ),
    # inside a post-norm add & norm it gives the same numbers as the add & norm itself
    *norm_kinds("norm", norm_input, when=lambda node: not (node.in_add_norm and node.is_post_norm)),
    ADDED,
    *(
        replace(kind, name=f"{sublayer}_add_norm")
        for sublayer in ("attention", "cross_attention", "feed_forward")
        for kind in (POST_NORM, PRE_NORM)
    ),
)
