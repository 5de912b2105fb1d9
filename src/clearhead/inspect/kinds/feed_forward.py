"""The feed-forward network: two matrices with a nonlinearity between them."""

from __future__ import annotations

import math

from clearhead.inspect.formula import call, equals, number, row, signed, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_matrix
from clearhead.inspect.kinds.kind import STREAM, described, own_input
from clearhead.inspect.kinds.letters import g, h, times, u, y
from clearhead.model.block import FeedForward
from clearhead.model.families import Head


def explain_activation(cell: TensorCell) -> Computation:
    """The activation function of a number; with SwiGLU, of the gate, times the other matrix's output."""
    module = cell.module(cell.owner)
    assert isinstance(module, FeedForward | Head)
    before = [cell.vector(parent)[cell.last_index] for parent in cell.parents]
    function = activation_name(cell)
    formula = call(function, symbol("x"))
    numbers = call(function, number(before[0].item()))
    if len(before) == 2:
        formula = row(formula, "·", symbol("u"))
        numbers = row(numbers, "·", signed(before[1].item()))
    factors = (module.activation(before[0]).item(), *(factor.item() for factor in before[1:]))
    return Computation(formula, numbers, math.prod(factors), (Term(cell.parents[-1], factors),))


def activation_name(cell: TensorCell) -> str:
    """The name of the activation function; the gate of SwiGLU has SiLU, the head of a whole text has its own."""
    if cell.owner == "head" and cell.config.head != "vocabulary":
        return cell.config.head_activation
    return "silu" if cell.config.activation == "swiglu" else cell.config.activation


GATE = described(
    "gate",
    axes=("batch", "token", "neuron"),
    formula=lambda config: equals(g, times("gate", config)),
    code=(FeedForward.forward, "inner = "),
    parents=own_input,
    parameters=lambda node: node.name,
    explain=explain_matrix,
)
UP = described("up", like=GATE, formula=lambda config: equals(u, times("1", config)))
RELU = described(
    "inner",
    "relu",
    when=lambda node: node.config.activation == "relu",
    axes=GATE.axes,
    formula=equals(h, call("max", row(symbol("0"), ",", u))),
    code=(FeedForward.forward, "inner = "),
    parents=lambda node: (node.beside("up"),),
    explain=explain_activation,
)
GELU = described(
    "inner",
    "gelu",
    like=RELU,
    when=lambda node: node.config.activation in ("gelu", "gelu-tanh"),
    formula=equals(h, row(u, "·", call("Φ", u))),
)
SILU = described(
    "inner",
    "silu",
    like=RELU,
    when=lambda node: node.config.activation == "silu",
    formula=equals(h, row(u, "·", call("sigmoid", u))),
)
SWIGLU = described(
    "inner",
    "swiglu",
    like=RELU,
    when=lambda node: node.config.activation == "swiglu",
    formula=equals(h, row(g, "·", call("sigmoid", g), "·", u)),
    parents=lambda node: (node.beside("gate"), node.beside("up")),
)
FEED_FORWARD = described(
    "feed_forward",
    axes=STREAM,
    formula=lambda config: equals(y, times("2", config, h)),
    code=(FeedForward.forward, "return self.down"),
    parents=lambda node: (node.inside("inner"),),
    parameters=lambda node: node.inside("down"),
    explain=explain_matrix,
    in_logit=True,
)
KINDS = (GATE, UP, RELU, GELU, SILU, SWIGLU, FEED_FORWARD)
