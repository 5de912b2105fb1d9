"""Queries, keys and values: three matrices times the vector of each token, split into heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clearhead.inspect.formula import at, call, equals, row, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, computed_sum, explain_matrix
from clearhead.inspect.kinds.kind import Kind, described, own_input, words_of
from clearhead.inspect.kinds.letters import times
from clearhead.inspect.kinds.norm import norm_kinds
from clearhead.inspect.paths import Node, stack_output
from clearhead.model.attention import Attention, rotate


def explain_rotation(cell: TensorCell) -> Computation:
    """A pair of channels, rotated by the angle of the token's position."""
    before, position = cell.parents
    half = cell.config.head_size // 2
    channel = cell.index["channel"]
    pair = channel % half
    head = cell.head_vector(before)
    cosine, sine = cell.part(position, head=0, token=cell.token, pair=pair).tolist()
    in_first_half = channel < half
    terms = (
        Term(f"channel {pair}", (head[pair].item(), cosine if in_first_half else sine)),
        Term(f"channel {pair + half}", (head[pair + half].item(), -sine if in_first_half else cosine)),
    )
    first, second = (at(symbol("x"), str(c)) for c in (pair, pair + half))
    cos, sin = (call(name, at(symbol("φ"), str(pair))) for name in ("cos", "sin"))
    formula = (
        row(first, "·", cos, "−", second, "·", sin) if in_first_half else row(first, "·", sin, "+", second, "·", cos)
    )
    return computed_sum(formula, terms)


def encoder_output(node: Node) -> tuple[str, ...]:
    """What cross-attention takes its keys and values from."""
    return (stack_output("encoder", node.config),)


def is_rotary(node: Node) -> bool:
    """Whether queries and keys are rotated."""
    return node.is_rotary


def projected(matrix: str, name: str, axis: str, function: Callable[..., Any]) -> tuple[Kind, Kind]:
    """The entries of queries, keys or values in cross-attention and in self-attention; `function` computes them."""
    letter = matrix[0].upper()
    read, parents = ("decoder", own_input) if matrix == "query" else ("encoder", encoder_output)
    plain = described(
        name,
        axes=("batch", "head", axis, "channel"),
        formula=lambda config: equals(symbol(letter), times(letter, config)),
        code=(function, f"{name} = self.split", f"{name} = self.{name}"),
        parents=own_input,
        parameters=lambda node: node.beside(matrix),
        explain=explain_matrix,
    )
    cross = described(
        name,
        "cross",
        like=plain,
        when=lambda node: node.in_cross_attention,
        formula=lambda config: equals(symbol(letter), times(letter, config, symbol("x", read))),
        parents=parents,
    )
    return cross, plain


def rotated(matrix: str, cross: Kind, plain: Kind) -> tuple[Kind, ...]:
    """All entries of queries or keys: before the rotation, normalized in each head (Qwen3), and at the end."""
    letter = matrix[0].upper()
    before = described(
        matrix,
        like=plain,
        when=is_rotary,  # else the same numbers as `queries`, not yet split into heads
        axes=tuple(axis for axis in plain.axes if axis != "head"),
        formula=lambda config: equals(symbol(matrix[0]), times(letter, config)),
        code=(plain.code[0], f"{plain.name} = self.split"),
        definition=None,
    )
    norms = norm_kinds(
        f"{matrix}_norm",
        reads=lambda node: node.beside(matrix),
        when=lambda node: node.config.query_key_norm,
        axes=plain.axes,
        replaces=matrix,
        **words_of(f"{matrix}_norm"),
    )
    after = described(
        plain.name,
        "rotary",
        like=plain,
        when=is_rotary,
        formula=lambda config: equals(symbol(letter), call("rotate", row(times(letter, config), ",", symbol("φ")))),
        code=(rotate, "first, second", "cos, sin", "return torch.cat"),
        parents=lambda node: (node.beside(matrix), f"{node.stack}.position"),
        explain=explain_rotation,
    )
    return (before, *norms, cross, after, plain)


QUERY_KINDS = rotated("query", *projected("query", "queries", "query", Attention.forward))
KEY_KINDS = rotated("key", *projected("key", "keys", "key", Attention.keys_and_values))
VALUE_KINDS = projected("value", "values", "key", Attention.keys_and_values)
