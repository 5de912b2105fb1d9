"""What enters the first block: embeddings of tokens, positions and segments, and their sum."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import nn

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, at, call, equals, fraction, number, power, root, row, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_sum, sum_of
from clearhead.inspect.kinds.kind import STREAM, Definition, Kind, PagePicture
from clearhead.inspect.kinds.letters import width, x
from clearhead.inspect.paths import Node, kind_of
from clearhead.model.stack import LearnedPosition, RotaryPosition, SinusoidalPosition, Stack, TokenEmbedding

SINUSOIDAL_BASE = 10_000.0


def explain_embedding(cell: TensorCell) -> Computation:
    """An entry of the token's row of the table, times √d_model if the model scales its embeddings."""
    stack = cell.module(cell.owner)
    assert isinstance(stack, Stack)
    token_id = cell.trace.ids["source" if cell.owner == "encoder" else "target"][cell.token]
    entry = stack.embedding.weight[token_id, cell.index["channel"]].item()
    formula = at(symbol("E"), str(token_id), "c")
    terms = (Term(f"row {token_id}", (entry, stack.embedding.scale)),)
    if stack.embedding.scale == 1:
        return Computation(formula, number(entry), entry, terms)
    return Computation(row(formula, "·", root(number(cell.config.d_model))), sum_of(terms), terms[0].value, terms)


def explain_table(cell: TensorCell, table: nn.Embedding, table_row: int) -> Computation:
    """An entry of a learned table."""
    entry = table.weight[table_row, cell.index["channel"]].item()
    terms = (Term(f"row {table_row}", (entry,)),)
    return Computation(at(symbol("P"), str(table_row), "c"), number(entry), entry, terms)


def explain_learned_position(cell: TensorCell) -> Computation:
    """An entry of the position's row of the table."""
    module = cell.module(cell.name)
    assert isinstance(module, LearnedPosition)
    return explain_table(cell, module.table, cell.token)


def explain_segment(cell: TensorCell) -> Computation:
    """An entry of the first row of the table: all tokens belong to the first segment."""
    table = cell.module(cell.name)
    assert isinstance(table, nn.Embedding)
    return explain_table(cell, table, 0)


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
    return Computation(
        call(function, formula),
        call(function, values),
        math.sin(angle) if function == "sin" else math.cos(angle),
        (Term("angle", (angle,)),),
    )


def added_up(node: Node) -> tuple[str, ...]:
    """The embeddings that enter the sum."""
    names = [node.beside("embedding")]
    if node.config.position in ("sinusoidal", "learned"):
        names.append(node.beside("position"))
    if node.config.segments:
        names.append(node.beside("segment"))
    return tuple(names)


def sum_formula(config: ModelConfig) -> Formula:
    """X = embedding + position + segment, as far as the model has them."""
    first, *others = (symbol(kind_of(name)) for name in added_up(Node("encoder.sum", config)))
    return equals(x, row(first, *(part for other in others for part in ("+", other))))


TABLE_ROW = at(symbol("E"), "id")
EMBEDDING = Kind(
    name="embedding",
    axes=STREAM,
    title="token embedding",
    text="Each token selects its row of a learned table. Because the entries of the table are small, the row is "
    "multiplied by √d_model, as in the paper.",
    formula=equals(x, row(TABLE_ROW, "·", root(width))),
    code=(TokenEmbedding.forward, "return F.embedding"),
    when=lambda node: node.config.scale_embedding,
    parameters=lambda node: node.name,
    explain=explain_embedding,
    picture=PagePicture("embedding"),
    definition=Definition("Embedding", "The vector that represents a token: a row of a learned table."),
    in_stream=True,
    in_logit=True,
)
PLAIN_EMBEDDING = replace(
    EMBEDDING,
    variant="plain",
    when=lambda node: not node.config.scale_embedding,
    text="Each token selects its row of a learned table. From here on, this vector represents the token.",
    formula=equals(x, TABLE_ROW),
)
SINUSOIDAL = Kind(
    name="position",
    variant="sinusoidal",
    when=lambda node: node.config.position == "sinusoidal",
    axes=("token", "channel"),
    title="positional encoding",
    text="Attention without a mask ignores the order of its tokens: permuted inputs give outputs permuted in the same "
    "way. So a vector that depends on the position t alone is added to each token: sines in the even channels and "
    "cosines of the same angles in the odd ones, with frequencies that fall from the first channel to the last. "
    "Nothing in it is learned.",
    formula=equals(
        at(symbol("p"), "t, 2i"),
        call("sin", fraction(symbol("t"), power(symbol("10000"), fraction(symbol("2i"), width)))),
    ),
    code=(SinusoidalPosition.forward, "angle = ", "return torch.stack"),
    parameters=lambda node: node.name,
    explain=explain_sinusoidal_position,
    picture=PagePicture("position"),
    definition=Definition(
        "Positional encoding",
        "What tells the model at which position a token stands: a vector that is added to its embedding, or a rotation "
        "of queries and keys.",
    ),
    in_logit=True,
)
LEARNED = replace(
    SINUSOIDAL,
    variant="learned",
    when=lambda node: node.config.position == "learned",
    title="learned positions",
    text="Attention without a mask ignores the order of its tokens. Here a learned vector for each position is added; "
    "a text cannot have more tokens than the table has rows.",
    formula=equals(at(symbol("p"), "t"), at(symbol("P"), "t")),
    code=(LearnedPosition.forward, "return self.table"),
    explain=explain_learned_position,
)
ROTARY = replace(
    SINUSOIDAL,
    variant="rotary",
    when=lambda node: node.config.position == "rotary",
    axes=("part", "batch", "head", "token", "pair"),
    title="rotary positions",
    text="Nothing is added to the embedding. Instead, pairs of channels of the queries and keys are rotated by angles "
    "that grow with the position t, quickly for the first pairs and slowly for the last. These are the cosines and "
    "sines of the angles.",
    formula=equals(
        at(symbol("φ"), "t, i"),
        fraction(symbol("t"), power(symbol("base"), fraction(symbol("2i"), symbol("d_head")))),
    ),
    code=(RotaryPosition.forward, "angle = ", "return torch.stack"),
    explain=explain_rotary_position,
)
SEGMENT = Kind(
    name="segment",
    axes=STREAM,
    title="segment embedding",
    text="A learned vector says which of several texts a token belongs to. Here all tokens belong to the first.",
    formula=equals(symbol("segment"), at(symbol("G"), "0")),
    code=(Stack.forward, "x = x + self.segment"),
    parameters=lambda node: node.name,
    explain=explain_segment,
    picture=PagePicture("embedding"),
    in_logit=True,
)
SUM = Kind(
    name="sum",
    axes=STREAM,
    title="input of the first block",
    text="The embedding of the token plus, unless positions are rotary or absent, the vector of its position, channel "
    "by channel. From here on, this vector is the residual stream: every block reads it and adds to it.",
    formula=sum_formula,
    code=(Stack.forward, "x = self.embedding", "x = x + self.position", "x = x + self.segment", "x = self.sum"),
    parents=added_up,
    explain=explain_sum,
    picture=PagePicture("embedding"),
    definition=Definition(
        "Residual stream",
        "One vector for each token, from the embedding to the output; every sublayer reads it and adds to it.",
    ),
    in_stream=True,
    in_logit=True,
)
KINDS = (EMBEDDING, PLAIN_EMBEDDING, SINUSOIDAL, LEARNED, ROTARY, SEGMENT, SUM)
