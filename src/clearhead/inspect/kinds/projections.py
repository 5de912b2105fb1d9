"""Queries, keys and values: three matrices times the vector of each token, split into heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clearhead.inspect.formula import Formula, at, call, equals, row, symbol
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_linear, numbered, sum_of, total_value
from clearhead.inspect.kinds.kind import Definition, Kind, PagePicture, own_input
from clearhead.inspect.kinds.letters import K, Q, V, times
from clearhead.inspect.kinds.norm import explain_normalized_head, norm_kinds
from clearhead.inspect.paths import Node, stack_output
from clearhead.model.attention import Attention, rotate

QUERY_HEADS = ("batch", "head", "query", "channel")
KEY_HEADS = ("batch", "head", "key", "channel")


def explain_projection(matrix: str) -> Callable[[TensorCell], Computation]:
    """A row of a matrix times the vector of the token."""

    def explain(cell: TensorCell) -> Computation:
        inputs = cell.vector(cell.parents[0])
        output = cell.index.get("head", 0) * cell.config.head_size + cell.index["channel"]
        return explain_linear(cell, f"{cell.owner}.{matrix}", output, inputs, numbered("channel", len(inputs)))

    return explain


def explain_rotation(cell: TensorCell) -> Computation:
    """A pair of channels, rotated by the angle of the token's position."""
    before, position = cell.parents
    size = cell.config.head_size
    half = size // 2
    channel = cell.index["channel"]
    pair = channel % half
    heads = cell.vector(before).view(-1, size)  # all heads side by side, or after a norm this one alone
    head = heads[cell.index["head"] if len(heads) > 1 else 0]
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
    return Computation(formula, sum_of(terms), total_value(terms), terms)


def encoder_output(node: Node) -> tuple[str, ...]:
    """What cross-attention takes its keys and values from."""
    return (stack_output("encoder", node.config),)


def rotated(before: str) -> Callable[[Node], tuple[str, ...]]:
    """The tensor before the rotation, and the angles."""
    return lambda node: (node.beside(before), f"{node.stack}.position")


def is_rotary(node: Node) -> bool:
    """Whether queries and keys are rotated."""
    return node.is_rotary


def is_cross(node: Node) -> bool:
    """Whether keys and values come from the encoder."""
    return node.in_cross_attention


def rotation(matrix: str) -> Callable[..., Formula]:
    """The formula of rotated queries or keys."""
    return lambda config: equals(symbol(matrix), call("rotate", row(times(matrix, config), ",", symbol("φ"))))


ENCODER = symbol("x", "encoder")
QUERY_LINES = ("queries = self.split", "queries = self.queries")
KEY_LINES = ("keys = self.split", "keys = self.keys")
VALUE_LINES = ("values = self.split", "values = self.values")
ROTATE_LINES = ("first, second", "cos, sin", "return torch.cat")

QUERY = Kind(
    name="query",
    when=is_rotary,  # else the same numbers as `queries`, not yet split into heads
    axes=("batch", "query", "channel"),
    title="queries before rotation",
    text="What each token looks for: a learned matrix times its vector. All heads side by side, not yet rotated by "
    "position.",
    formula=lambda config: equals(symbol("q"), times("Q", config)),
    code=(Attention.forward, "queries = self.split"),
    parents=own_input,
    parameters=lambda node: node.name,
    explain=explain_projection("query"),
    picture=PagePicture("attention", "Queries before rotation", "all heads"),
)
QUERIES = Kind(
    name="queries",
    axes=QUERY_HEADS,
    title="queries",
    text="What each token looks for: a learned matrix times its vector, split into one part for each head. Splitting "
    "costs no computation; every head works on its own channels.",
    formula=lambda config: equals(Q, times("Q", config)),
    code=(Attention.forward, *QUERY_LINES),
    parents=own_input,
    parameters=lambda node: node.beside("query"),
    explain=explain_projection("query"),
    picture=PagePicture("attention", "Queries", "what each token looks for"),
    definition=Definition(
        "Query, key, value",
        "Three vectors that attention computes from each token: what it looks for, what it is found by, and the "
        "information that it passes on.",
    ),
)
CROSS_QUERIES = replace(
    QUERIES,
    variant="cross",
    when=is_cross,
    title="queries of the decoder",
    text="In cross-attention the queries come from the decoder: what each token written so far looks for in the "
    "source.",
    formula=lambda config: equals(Q, times("Q", config, symbol("x", "decoder"))),
)
ROTARY_QUERIES = replace(
    QUERIES,
    variant="rotary",
    when=is_rotary,
    title="queries after rotation",
    text="What each token looks for: a learned matrix times its vector, split into heads. Then each pair of channels "
    "is rotated by an angle that depends on the token's position, so that the dot product of a query and a key "
    "depends on their distance.",
    formula=rotation("Q"),
    code=(rotate, *ROTATE_LINES),
    parents=rotated("query"),
    explain=explain_rotation,
)
KEY = replace(
    QUERY,
    name="key",
    axes=("batch", "key", "channel"),
    title="keys before rotation",
    text="What each token is found by: a learned matrix times its vector. All heads side by side, not yet rotated by "
    "position.",
    formula=lambda config: equals(symbol("k"), times("K", config)),
    code=(Attention.keys_and_values, "keys = self.split"),
    explain=explain_projection("key"),
    picture=PagePicture("attention", "Keys before rotation", "all heads"),
)
KEYS = replace(
    QUERIES,
    name="keys",
    axes=KEY_HEADS,
    title="keys",
    text="What each token is found by: a learned matrix times its vector, split into heads. With fewer key/value "
    "heads than heads, several heads share them, which keeps the cache of decoding small.",
    formula=lambda config: equals(K, times("K", config)),
    code=(Attention.keys_and_values, *KEY_LINES),
    parameters=lambda node: node.beside("key"),
    explain=explain_projection("key"),
    picture=PagePicture("attention", "Keys", "what each token is found by"),
    definition=None,
)
CROSS_KEYS = replace(
    KEYS,
    variant="cross",
    when=is_cross,
    title="keys of the source",
    text="In cross-attention the keys come from the encoder's output: what each source token is found by. They are "
    "computed once for a sentence, however long the translation.",
    formula=lambda config: equals(K, times("K", config, ENCODER)),
    parents=encoder_output,
)
ROTARY_KEYS = replace(
    KEYS,
    variant="rotary",
    when=is_rotary,
    title="keys after rotation",
    text="What each token is found by: a learned matrix times its vector, split into heads. Then each pair of "
    "channels is rotated by an angle that depends on the token's position, so that the dot product of a query and a "
    "key depends on their distance.",
    formula=rotation("K"),
    code=(rotate, *ROTATE_LINES),
    parents=rotated("key"),
    explain=explain_rotation,
)
VALUES = replace(
    KEYS,
    name="values",
    title="values",
    text="The information that each token passes on to those that attend to it: a learned matrix times its vector, "
    "split into heads.",
    formula=lambda config: equals(V, times("V", config)),
    code=(Attention.keys_and_values, *VALUE_LINES),
    parameters=lambda node: node.beside("value"),
    explain=explain_projection("value"),
    picture=PagePicture("attention", "Values", "what each token passes on"),
)
CROSS_VALUES = replace(
    VALUES,
    variant="cross",
    when=is_cross,
    title="values of the source",
    text="In cross-attention the values come from the encoder's output: the information that each source token passes "
    "on to the token that is being written.",
    formula=lambda config: equals(V, times("V", config, ENCODER)),
    parents=encoder_output,
)


def head_norm(matrix: str, axes: tuple[str, ...], title: str) -> tuple[Kind, ...]:
    """The entries of a norm on the queries or keys of each head, before their rotation."""
    return norm_kinds(
        f"{matrix}_norm",
        reads=lambda node: node.beside(matrix),
        when=lambda node: node.config.query_key_norm,
        axes=axes,
        inside=explain_normalized_head,
        title=f"normalized {title}",
        text=f"The {title} of each head, brought to one scale before they are rotated, so that no score can grow "
        "without limit (Qwen3).",
        picture=PagePicture("attention", f"Normalized {title}", "one scale for all"),
        replaces=matrix,
    )


QUERY_NORM = head_norm("query", QUERY_HEADS, "queries")
KEY_NORM = head_norm("key", KEY_HEADS, "keys")
