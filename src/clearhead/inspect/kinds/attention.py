"""Attention after the projections: scores, mask, weights, the output of each head, and all heads joined."""

from __future__ import annotations

import math
from dataclasses import replace

from clearhead.inspect.formula import (
    at,
    call,
    equals,
    fraction,
    number,
    power,
    root,
    row,
    signed,
    spell,
    symbol,
    total,
)
from clearhead.inspect.kinds.cell import (
    Computation,
    TensorCell,
    Term,
    explain_linear,
    products,
    sum_of,
    total_value,
)
from clearhead.inspect.kinds.kind import PAIRS, STREAM, Definition, Kind, PagePicture
from clearhead.inspect.kinds.letters import A, K, Q, S, V, times, y
from clearhead.inspect.kinds.projections import (
    CROSS_KEYS,
    CROSS_QUERIES,
    CROSS_VALUES,
    KEY,
    KEY_NORM,
    KEYS,
    QUERIES,
    QUERY,
    QUERY_HEADS,
    QUERY_NORM,
    ROTARY_KEYS,
    ROTARY_QUERIES,
    VALUES,
)
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
    return Computation(
        fraction(total("c", row(at(symbol("q"), "c"), "·", at(symbol("k"), "c"))), root(number(size))),
        fraction(sum_of(terms), number(math.sqrt(size))),
        total_value(terms) / math.sqrt(size),
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
    return Computation(formula, sum_of(terms), total_value(terms), terms)


def explain_joined_heads(cell: TensorCell) -> Computation:
    """A row of the output matrix times the outputs of all heads, side by side."""
    heads = cell.part(cell.parents[0], query=cell.token)  # (H, K)
    labels = [f"head {h}, channel {c}" for h in range(len(heads)) for c in range(heads.size(1))]
    return explain_linear(cell, f"{cell.name}.out", cell.index["channel"], heads.flatten(), labels)


SCORES = Kind(
    name="scores",
    axes=PAIRS,
    title="scores",
    text="How well each key matches each query: their dot product. A sum of d_head products is about √d_head times as "
    "large as one of them, so it is divided by √d_head; otherwise the softmax would saturate, and its gradients "
    "vanish.",
    formula=equals(S, fraction(row(Q, power(K, symbol("T"))), root(symbol("d_head")))),
    code=(Attention.weigh, "own_scores = "),
    parents=lambda node: (node.beside("queries"), node.beside("keys")),
    explain=explain_score,
    picture=PagePicture("attention", "Scores", "Q·Kᵀ / √d"),
    definition=Definition(
        "Score", "The dot product of a query and a key, divided by the square root of their number of channels."
    ),
)
MASK = Kind(
    name="mask",
    axes=PAIRS,
    title="attention mask",
    text="1 where a query may attend to a key. In this attention every token may be attended to.",
    formula=equals(at(symbol("m"), "i, j"), symbol("1")),
    code=(Attention.weigh, "elif mask is None", "mask = torch.ones", "own_mask = "),
    explain=explain_full_mask,
    picture=PagePicture("attention", "Mask", "who may attend to whom", palette="weights"),
    definition=Definition("Mask", "Which token may attend to which. In a decoder no token attends to a later one."),
)
CAUSAL_MASK = replace(
    MASK,
    variant="causal",
    when=lambda node: node.is_causal,
    title="causal mask",
    text="1 where a query may attend to a key. No token attends to a later one, so the model can be trained to "
    "predict the next token at every position at once, without seeing it.",
    formula=equals(at(symbol("m"), "i, j"), symbol("1 if j ≤ i else 0")),
    code=(Attention.weigh, "if causal", "mask = causal_mask", "own_mask = "),
    explain=explain_causal_mask,
)
WINDOW_MASK = replace(
    CAUSAL_MASK,
    variant="window",
    when=lambda node: node.is_causal and node.config.window > 0,
    title="causal mask with a window",
    text="1 where a query may attend to a key. No token attends to a later one, nor to one that stands too far before "
    "it; over several blocks, information still travels further than the window.",
    formula=equals(at(symbol("m"), "i, j"), symbol("1 if 0 ≤ i − j ≤ window − 1 else 0")),
    code=(causal_mask, "mask = ", "return mask.triu"),
    explain=explain_window_mask,
)
WEIGHTS = Kind(
    name="weights",
    axes=PAIRS,
    title="attention weights",
    text="The softmax of the scores, row by row: positive numbers that sum to 1 over the tokens that a query may "
    "attend to. Masked tokens get exactly 0.",
    formula=equals(A, call("softmax", row(S, spell("where"), symbol("m"), "=", number(1)))),
    code=(masked_softmax, "weights = ", "return torch.where"),
    parents=lambda node: (node.beside("scores"), node.beside("mask")),
    explain=explain_weight,
    picture=PagePicture("attention", "Weights", "softmax", palette="weights"),
    definition=Definition("Attention weight", "How much of a token's value is taken; each row of weights sums to 1."),
)
HEAD_OUTPUTS = Kind(
    name="head_outputs",
    axes=QUERY_HEADS,
    title="output of each head",
    text="For each query, the mean of the values, weighted by attention. The fused kernel computes scores, weights "
    "and this mean in one step; what you see is its result.",
    formula=equals(symbol("head"), row(A, V)),
    code=(Attention.attend, "return F.dropout(weights", "return self.kernel"),
    parents=lambda node: (node.beside("weights"), node.beside("values")),
    explain=explain_head_output,
    picture=PagePicture("attention", "Head output", "weights · V"),
    in_logit=True,
)
ATTENTION = Kind(
    name="attention",
    axes=STREAM,
    title="output of self-attention",
    text="The outputs of all heads side by side, mixed by one matrix. This is what self-attention adds to the stream.",
    formula=lambda config: equals(y, times("O", config, symbol("[head_1 … head_h]"))),
    code=(Attention.forward, "return self.out"),
    parents=lambda node: (node.inside("head_outputs"),),
    parameters=lambda node: node.inside("out"),
    explain=explain_joined_heads,
    picture=PagePicture("attention", "Output", "all heads, joined"),
    definition=Definition("Self-attention", "Tokens attend to tokens of the same sequence."),
    in_logit=True,
)
CROSS_ATTENTION = replace(
    ATTENTION,
    name="cross_attention",
    title="output of cross-attention",
    text="The outputs of all heads, which have read the source, mixed by one matrix: the only path from the encoder "
    "into the decoder.",
    definition=Definition(
        "Cross-attention",
        "Tokens that are written (queries) attend to the tokens that were read (keys and values).",
    ),
)
KINDS = (  # in the order in which the page draws them
    *(QUERY, *QUERY_NORM, CROSS_QUERIES, ROTARY_QUERIES, QUERIES),
    *(KEY, *KEY_NORM, CROSS_KEYS, ROTARY_KEYS, KEYS),
    SCORES,
    *(WINDOW_MASK, CAUSAL_MASK, MASK),
    WEIGHTS,
    *(CROSS_VALUES, VALUES),
    HEAD_OUTPUTS,
    ATTENTION,
    CROSS_ATTENTION,
)
