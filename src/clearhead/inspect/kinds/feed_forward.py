"""The feed-forward network: two matrices with a nonlinearity between them."""

from __future__ import annotations

import math
from dataclasses import replace

from clearhead.inspect.formula import call, equals, number, row, signed, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_matrix
from clearhead.inspect.kinds.kind import STREAM, Definition, Kind, PagePicture, own_input
from clearhead.inspect.kinds.letters import g, h, times, u, y
from clearhead.model.block import FeedForward
from clearhead.model.families import Head

NEURONS = ("batch", "token", "neuron")


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


GATE = Kind(
    name="gate",
    axes=NEURONS,
    title="gate",
    text="A second matrix beside the first. Its output, after the activation function SiLU, scales each neuron "
    "(SwiGLU).",
    formula=lambda config: equals(g, times("gate", config)),
    code=(FeedForward.forward, "inner = "),
    parents=own_input,
    parameters=lambda node: node.name,
    explain=lambda cell: explain_matrix(cell, cell.name, "channel"),
    picture=PagePicture("feedforward", "The gate, before its activation function"),
)
UP = Kind(
    name="up",
    axes=NEURONS,
    title="feed-forward, first matrix",
    text="The same matrix for each token separately: it widens the vector, in the paper by a factor of four. Each row "
    "of the matrix is a pattern, and a large number says that the token's vector matches it.",
    formula=lambda config: equals(u, times("1", config)),
    code=(FeedForward.forward, "inner = "),
    parents=own_input,
    parameters=lambda node: node.name,
    explain=lambda cell: explain_matrix(cell, cell.name, "channel"),
    picture=PagePicture("feedforward", "First matrix"),
)
INNER = Kind(
    name="inner",
    variant="relu",
    when=lambda node: node.config.activation == "relu",
    axes=NEURONS,
    title="feed-forward, hidden layer",
    text="ReLU: negative numbers become 0. Without a nonlinearity, two matrices could do no more than one.",
    formula=equals(h, call("max", row(symbol("0"), ",", u))),
    code=(FeedForward.forward, "inner = "),
    parents=lambda node: (node.beside("up"),),
    explain=explain_activation,
    picture=PagePicture("feedforward", "After the activation function: the neurons"),
)
GELU = replace(
    INNER,
    variant="gelu",
    when=lambda node: node.config.activation in ("gelu", "gelu-tanh"),
    text="GELU: each number times the probability that a standard normal variable is smaller, a smooth version of "
    "ReLU (GPT-2 approximates it with tanh). Without a nonlinearity, two matrices could do no more than one.",
    formula=equals(h, row(u, "·", call("Φ", u))),
)
SILU = replace(
    INNER,
    variant="silu",
    when=lambda node: node.config.activation == "silu",
    text="SiLU: each number times its sigmoid, a smooth version of ReLU. Without a nonlinearity, two matrices could do "
    "no more than one.",
    formula=equals(h, row(u, "·", call("sigmoid", u))),
)
SWIGLU = replace(
    INNER,
    variant="swiglu",
    when=lambda node: node.config.activation == "swiglu",
    text="SwiGLU: the output of the first matrix times the gate after its activation function, SiLU. Without a "
    "nonlinearity, the matrices could do no more than one.",
    formula=equals(h, row(g, "·", call("sigmoid", g), "·", u)),
    parents=lambda node: (node.beside("gate"), node.beside("up")),
)
FEED_FORWARD = Kind(
    name="feed_forward",
    axes=STREAM,
    title="feed-forward, output",
    text="The second matrix: every neuron adds its column, scaled by its activation, and the result has the width of "
    "the stream again. All positions share the same weights.",
    formula=lambda config: equals(y, times("2", config, h)),
    code=(FeedForward.forward, "return self.down"),
    parents=lambda node: (node.inside("inner"),),
    parameters=lambda node: node.inside("down"),
    explain=lambda cell: explain_matrix(cell, f"{cell.name}.down", "neuron"),
    picture=PagePicture("feedforward", "Second matrix: what it adds"),
    definition=Definition(
        "Feed-forward", "Two matrices with a nonlinearity between them, applied to each token separately."
    ),
    in_logit=True,
)
KINDS = (GATE, UP, INNER, GELU, SILU, SWIGLU, FEED_FORWARD)
