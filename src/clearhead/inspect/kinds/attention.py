"""Attention after the projections: scores, mask, weights, the output of each head, and all heads joined."""

from __future__ import annotations

import math

from clearhead.inspect.formula import at, call, equals, fraction, number, power, root, row, signed, spell, symbol, total
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, computed_sum, explain_linear, products
from clearhead.inspect.kinds.kind import PAIRS, QUERY_HEADS, STREAM, described
from clearhead.inspect.kinds.letters import A, K, Q, S, V, times, y
from clearhead.inspect.kinds.projections import KEY_KINDS, QUERY_KINDS, VALUE_KINDS
from clearhead.model.attention import Attention, causal_mask, masked_softmax


def shared_head(cell: TensorCell) -> int:
    """The key/value head that serves this query head."""
    heads = cell.config.heads
    kv_heads = cell.config.kv_heads or heads
    return cell.index["head"] // (heads // kv_heads)


def explain_score(cell: TensorCell) -> Computation:
    """The dot product of a query and a key, over the square root of the head size."""
    queries, keys = cell.parents
    query = cell.part(queries, head=cell.index["head"], query=cell.index["query"])
    key = cell.part(keys, head=shared_head(cell), key=cell.index["key"])
    size = float(len(query))
    terms = products(query, key, [f"channel {c}" for c in range(len(query))])
    dot = computed_sum(total("c", row(at(symbol("q"), "c"), "·", at(symbol("k"), "c"))), terms)
    return Computation(
        fraction(dot.formula, root(number(size))),
        fraction(dot.numbers, number(math.sqrt(size))),
        dot.value / math.sqrt(size),
        terms,
    )


def explain_causal_mask(cell: TensorCell) -> Computation:
    """1 where the key stands no later than the query."""
    query = cell.index["query"]
    key = cell.index["key"]
    formula = symbol("1 if the key stands no later than the query, else 0")
    numbers = symbol(f"key {key} {'≤' if key <= query else '>'} query {query}")
    return Computation(formula, numbers, float(key <= query), ())


def explain_window_mask(cell: TensorCell) -> Computation:
    """1 where the key stands no later than the query, and in its window."""
    distance = cell.index["query"] - cell.index["key"]
    inside = 0 <= distance < cell.config.window
    formula = symbol("1 if the key stands no later than the query, and in its window, else 0")
    numbers = symbol(f"query − key = {distance}, {'in' if inside else 'not in'} 0 … {cell.config.window - 1}")
    return Computation(formula, numbers, float(inside), ())


def explain_full_mask(_cell: TensorCell) -> Computation:
    """1 everywhere: a single text has no padding."""
    return Computation(symbol("1: every token may be attended to"), number(1), 1.0, ())


def explain_weight(cell: TensorCell) -> Computation:
    """The exponential of a score over the sum of those that are not masked; the maximum is subtracted before."""
    scores, mask = (cell.part(p, head=cell.index["head"], query=cell.index["query"]) for p in cell.parents)
    key = cell.index["key"]
    maximum = symbol("s", "max")
    below = total("seen", call("exp", row(at(symbol("s"), "m"), "−", maximum)))
    formula = fraction(call("exp", row(at(symbol("s"), "j"), "−", maximum)), below)
    if not mask[key]:
        return Computation(formula, symbol("0: the query may not attend to this token"), 0.0, ())
    scores = scores.masked_fill(mask == 0, -math.inf)
    exponentials = (scores - scores.max()).exp().tolist()
    tokens = cell.trace.named(cell.name).labels[-1]
    terms = tuple(Term(token, (e,)) for token, e in zip(tokens, exponentials, strict=True))
    above = call("exp", row(number(scores[key].item()), "−", signed(scores.max().item())))
    value = exponentials[key] / sum(exponentials)
    return Computation(formula, fraction(above, number(sum(exponentials))), value, terms)


def explain_head_output(cell: TensorCell) -> Computation:
    """The mean of the values of all tokens, weighted by attention."""
    weights, values = cell.parents
    row_of_weights = cell.part(weights, head=cell.index["head"], query=cell.index["query"])
    column = cell.part(values, head=shared_head(cell), channel=cell.index["channel"])
    terms = products(row_of_weights, column, cell.trace.named(weights).labels[-1])
    formula = total("j", row(at(symbol("w"), "j"), "·", at(symbol("v"), "j")))
    return computed_sum(formula, terms)


def explain_joined_heads(cell: TensorCell) -> Computation:
    """A row of the output matrix times the outputs of all heads, side by side."""
    heads = cell.part(cell.parents[0], query=cell.token)  # (H, K)
    labels = [f"head {h}, channel {c}" for h in range(len(heads)) for c in range(heads.size(1))]
    return explain_linear(cell, cell.index["channel"], heads.flatten(), labels)


SCORES = described(
    "scores",
    axes=PAIRS,
    formula=equals(S, fraction(row(Q, power(K, symbol("T"))), root(symbol("d_head")))),
    code=(Attention.weigh, "own_scores = "),
    parents=lambda node: (node.beside("queries"), node.beside("keys")),
    explain=explain_score,
)
MASK = described(
    "mask",
    axes=PAIRS,
    formula=equals(at(symbol("m"), "i, j"), symbol("1")),
    code=(Attention.weigh, "elif mask is None", "mask = torch.ones", "own_mask = "),
    explain=explain_full_mask,
)
CAUSAL_MASK = described(
    "mask",
    "causal",
    like=MASK,
    when=lambda node: node.is_causal,
    formula=equals(at(symbol("m"), "i, j"), symbol("1 if j ≤ i else 0")),
    code=(Attention.weigh, "if causal", "mask = causal_mask", "own_mask = "),
    explain=explain_causal_mask,
)
WINDOW_MASK = described(
    "mask",
    "window",
    like=MASK,
    when=lambda node: node.is_causal and node.config.window > 0,
    formula=equals(at(symbol("m"), "i, j"), symbol("1 if 0 ≤ i − j ≤ window − 1 else 0")),
    code=(causal_mask, "mask = ", "return mask.triu"),
    explain=explain_window_mask,
)
WEIGHTS = described(
    "weights",
    axes=PAIRS,
    formula=equals(A, call("softmax", row(S, spell("where"), symbol("m"), "=", number(1)))),
    code=(masked_softmax, "weights = ", "return torch.where"),
    parents=lambda node: (node.beside("scores"), node.beside("mask")),
    explain=explain_weight,
)
HEAD_OUTPUTS = described(
    "head_outputs",
    axes=QUERY_HEADS,
    formula=equals(symbol("head"), row(A, V)),
    code=(Attention.attend, "return F.dropout(weights", "return self.kernel"),
    parents=lambda node: (node.beside("weights"), node.beside("values")),
    explain=explain_head_output,
    in_logit=True,
)
ATTENTION = described(
    "attention",
    axes=STREAM,
    formula=lambda config: equals(y, times("O", config, symbol("[head_1 … head_h]"))),
    code=(Attention.forward, "return self.out"),
    parents=lambda node: (node.inside("head_outputs"),),
    parameters=lambda node: node.inside("out"),
    explain=explain_joined_heads,
    in_logit=True,
)
CROSS_ATTENTION = described("cross_attention", like=ATTENTION)
KINDS = (  # in the order in which the page draws them
    *QUERY_KINDS,
    *KEY_KINDS,
    SCORES,
    *(WINDOW_MASK, CAUSAL_MASK, MASK),
    WEIGHTS,
    *VALUE_KINDS,
    HEAD_OUTPUTS,
    ATTENTION,
    CROSS_ATTENTION,
)
