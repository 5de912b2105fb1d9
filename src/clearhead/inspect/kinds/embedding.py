"""What enters the first block: embeddings of tokens, positions and segments, and their sum."""

from __future__ import annotations

import math

import torch
from torch import nn

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, at, call, equals, fraction, number, power, root, row, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, added, explain_sum, sum_of
from clearhead.inspect.kinds.kind import STREAM, described
from clearhead.inspect.kinds.letters import width, x
from clearhead.inspect.paths import Node
from clearhead.model.stack import LearnedPosition, RotaryPosition, SinusoidalPosition, Stack, TokenEmbedding

SINUSOIDAL_BASE = 10_000.0


def explain_embedding(cell: TensorCell) -> Computation:
    """An entry of the token's row of the table, times √d_model if the model scales its embeddings."""
    table = cell.module(cell.name)
    assert isinstance(table, TokenEmbedding)
    token_id = cell.trace.ids["source" if cell.owner == "encoder" else "target"][cell.token]
    entry = table.weight[token_id, cell.index["channel"]].item()
    formula = at(symbol("E"), str(token_id), "c")
    terms = (Term(f"row {token_id}", (entry, table.scale)),)
    if table.scale == 1:
        return Computation(formula, number(entry), entry, terms)
    return Computation(row(formula, "·", root(number(cell.config.d_model))), sum_of(terms), terms[0].value, terms)


def explain_table(cell: TensorCell) -> Computation:
    """An entry of a learned table: in the row of the position, or in the first, since there is only one segment."""
    module = cell.module(cell.name)
    table, table_row = (module.table, cell.token) if isinstance(module, LearnedPosition) else (module, 0)
    assert isinstance(table, nn.Embedding)
    entry = table.weight[table_row, cell.index["channel"]].item()
    terms = (Term(f"row {table_row}", (entry,)),)
    return Computation(at(symbol("P"), str(table_row), "c"), number(entry), entry, terms)


def explain_sinusoidal_position(cell: TensorCell) -> Computation:
    """A sine in the even channels, a cosine in the odd ones."""
    pair, odd = divmod(cell.index["channel"], 2)
    return explain_angle(cell, ("sin", "cos")[odd], pair, cell.config.d_model, SINUSOIDAL_BASE)


def explain_rotary_position(cell: TensorCell) -> Computation:
    """The cosine or the sine of the angle that a pair of channels is rotated by."""
    function = ("cos", "sin")[cell.index["part"]]
    pair = cell.index["pair"]
    module = cell.module(cell.name)
    assert isinstance(module, RotaryPosition)
    slowed = 1.0 if module.factor == 1 else module.slowed(torch.device("cpu"), torch.float64)[0, pair].item()
    return explain_angle(cell, function, pair, module.size, module.base, slowed)


def explain_angle(
    cell: TensorCell, function: str, pair: int, size: int, base: float, slowed: float = 1.0
) -> Computation:
    """The sine or cosine of position / base^(2 pair / size), slowed down by a factor where the settings say so."""
    letters = power(number(base, 6), fraction(symbol("2i"), symbol("size")))
    numbers = power(number(base, 6), fraction(number(2 * pair), number(size)))
    angle = slowed * cell.token / base ** (2 * pair / size)
    formula = fraction(symbol("position"), letters)
    values = fraction(number(cell.token), numbers)
    if slowed != 1:
        formula = row(symbol("slowed"), "·", formula)
        values = row(number(slowed), "·", values)
    value = math.sin(angle) if function == "sin" else math.cos(angle)
    return Computation(call(function, formula), call(function, values), value, (Term("angle", (angle,)),))


def sum_parents(node: Node) -> tuple[str, ...]:
    """The embeddings that enter the sum."""
    names = [node.beside("embedding")]
    if node.config.position in ("sinusoidal", "learned"):
        names.append(node.beside("position"))
    if node.config.segments:
        names.append(node.beside("segment"))
    return tuple(names)


def sum_formula(config: ModelConfig) -> Formula:
    """X = embedding + position + segment, as far as the model has them."""
    return equals(x, added(sum_parents(Node("encoder.sum", config))))


TABLE_ROW = at(symbol("E"), "id")
EMBEDDING = described(
    "embedding",
    when=lambda node: node.config.scale_embedding,
    axes=STREAM,
    formula=equals(x, row(TABLE_ROW, "·", root(width))),
    code=(TokenEmbedding.forward, "return F.embedding"),
    parameters=lambda node: node.name,
    explain=explain_embedding,
    in_stream=True,
    in_logit=True,
)
PLAIN_EMBEDDING = described(
    "embedding",
    "plain",
    like=EMBEDDING,
    when=lambda node: not node.config.scale_embedding,
    formula=equals(x, TABLE_ROW),
)
SINUSOIDAL = described(
    "position",
    "sinusoidal",
    when=lambda node: node.config.position == "sinusoidal",
    axes=("token", "channel"),
    formula=equals(
        at(symbol("p"), "t, 2i"),
        call("sin", fraction(symbol("t"), power(symbol("10000"), fraction(symbol("2i"), width)))),
    ),
    code=(SinusoidalPosition.forward, "angle = ", "return torch.stack"),
    parameters=lambda node: node.name,
    explain=explain_sinusoidal_position,
    in_logit=True,
)
LEARNED = described(
    "position",
    "learned",
    like=SINUSOIDAL,
    when=lambda node: node.config.position == "learned",
    formula=equals(at(symbol("p"), "t"), at(symbol("P"), "t")),
    code=(LearnedPosition.forward, "return self.table"),
    explain=explain_table,
)
ROTARY = described(
    "position",
    "rotary",
    like=SINUSOIDAL,
    when=lambda node: node.config.position == "rotary",
    axes=("part", "batch", "head", "token", "pair"),
    formula=equals(
        at(symbol("φ"), "t, i"),
        fraction(symbol("t"), power(symbol("base"), fraction(symbol("2i"), symbol("d_head")))),
    ),
    code=(RotaryPosition.forward, "angle = ", "return torch.stack"),
    explain=explain_rotary_position,
)
SEGMENT = described(
    "segment",
    axes=STREAM,
    formula=equals(symbol("segment"), at(symbol("G"), "0")),
    code=(Stack.forward, "x = x + self.segment"),
    parameters=lambda node: node.name,
    explain=explain_table,
    in_logit=True,
)
SUM = described(
    "sum",
    axes=STREAM,
    formula=sum_formula,
    code=(Stack.forward, "x = self.embedding", "x = x + self.position", "x = x + self.segment", "x = self.sum"),
    parents=sum_parents,
    explain=explain_sum,
    in_stream=True,
    in_logit=True,
)
KINDS = (EMBEDDING, PLAIN_EMBEDDING, SINUSOIDAL, LEARNED, ROTARY, SEGMENT, SUM)
