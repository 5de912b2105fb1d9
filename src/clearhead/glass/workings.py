"""How a cell of each kind of tensor is computed from the tensors before it, in letters and in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from clearhead.config import ModelConfig
from clearhead.glass.formula import at, call, fraction, number, power, root, row, signed, symbol, total
from clearhead.glass.names import kind_of
from clearhead.glass.working import Cell, Term, Working, counted, linear, products, total_of
from clearhead.model.block import FeedForward, LayerNorm, RMSNorm
from clearhead.model.families import Head
from clearhead.model.stack import LearnedPosition, Stack


def projected(matrix: str) -> Callable[[Cell], Working]:
    """Queries, keys and values: a row of a matrix, perhaps turned by the token's position."""

    def work(cell: Cell) -> Working:
        if len(cell.parents) == 2:
            return rotated(cell)
        inputs = cell.vector(cell.parents[0])
        output = cell.place.get("head", 0) * cell.config.head_size + cell.place["channel"]
        return linear(cell, f"{cell.above}.{matrix}", output, inputs, counted("channel", len(inputs)))

    return work


def rotated(cell: Cell) -> Working:
    """A pair of channels, turned by the angle of the token's position."""
    before, position = cell.parents
    size, channel = cell.config.head_size, cell.place["channel"]
    half = size // 2
    pair, head = channel % half, cell.vector(before).view(-1, size)[cell.place["head"]]
    cosine, sine = cell.part(position, head=0, token=cell.token, pair=pair).tolist()
    first, second = head[pair].item(), head[pair + half].item()
    low = channel < half
    terms = (
        Term(f"channel {pair}", (first, cosine if low else sine)),
        Term(f"channel {pair + half}", (second, -sine if low else cosine)),
    )
    x = [at(symbol("x"), str(c)) for c in (pair, pair + half)]
    cos, sin = (call(name, at(symbol("φ"), str(pair))) for name in ("cos", "sin"))
    formula = row(x[0], "·", cos, "−", x[1], "·", sin) if low else row(x[0], "·", sin, "+", x[1], "·", cos)
    return Working(formula, total_of(terms), sum(term.value for term in terms), terms)


def shared_head(cell: Cell) -> int:
    """The key/value head that serves this query head."""
    heads, kv_heads = cell.config.heads, cell.config.kv_heads or cell.config.heads
    return cell.place["head"] // (heads // kv_heads)


def score(cell: Cell) -> Working:
    """A query's dot product with a key, over the root of the head's size."""
    queries, keys = cell.parents
    query = cell.part(queries, head=cell.place["head"], query=cell.place["query"])
    key = cell.part(keys, head=shared_head(cell), key=cell.place["key"])
    terms, size = products(query, key, counted("channel", len(query))), float(len(query))
    formula = fraction(total("c", row(at(symbol("q"), "c"), "·", at(symbol("k"), "c"))), root(number(size)))
    value = sum(term.value for term in terms) / math.sqrt(size)
    return Working(formula, fraction(total_of(terms), number(math.sqrt(size))), value, terms)


def weight(cell: Cell) -> Working:
    """The exponential of a score over the sum of those that the query may look at; the highest is taken off before."""
    scores, mask = (cell.part(p, head=cell.place["head"], query=cell.place["query"]) for p in cell.parents)
    key, tokens, highest = cell.place["key"], cell.trace.named(cell.name).labels[-1], symbol("s", "max")
    over = total("seen", call("exp", row(at(symbol("s"), "m"), "−", highest)))
    formula = fraction(call("exp", row(at(symbol("s"), "j"), "−", highest)), over)
    if not mask[key]:
        return Working(formula, symbol("0: the query may not look at this token"), 0.0, ())
    scores = scores.masked_fill(mask == 0, -math.inf)
    exponentials = (scores - scores.max()).exp().tolist()
    terms = tuple(Term(token, (e,)) for token, e in zip(tokens, exponentials, strict=True))
    above = call("exp", row(number(scores[key].item()), "−", signed(scores.max().item())))
    return Working(formula, fraction(above, number(sum(exponentials))), exponentials[key] / sum(exponentials), terms)


def head_output(cell: Cell) -> Working:
    """The values of all tokens, each by its weight."""
    weights, values = cell.parents
    row_of_weights = cell.part(weights, head=cell.place["head"], query=cell.place["query"])
    column = cell.part(values, head=shared_head(cell), channel=cell.place["channel"])
    terms = products(row_of_weights, column, cell.trace.named(weights).labels[-1])
    formula = total("j", row(at(symbol("w"), "j"), "·", at(symbol("v"), "j")))
    return Working(formula, total_of(terms), sum(term.value for term in terms), terms)


def joined(cell: Cell) -> Working:
    """A row of the output matrix times the outputs of all heads, side by side."""
    heads = cell.part(cell.parents[0], query=cell.token)  # H, K
    labels = [f"head {h}, channel {c}" for h in range(len(heads)) for c in range(heads.size(1))]
    return linear(cell, f"{cell.name}.out", cell.place["channel"], heads.flatten(), labels)


def fed_forward(matrix: str) -> Callable[[Cell], Working]:
    """A matrix of the feed-forward, or of the head."""

    def work(cell: Cell) -> Working:
        owner = cell.name if matrix == "down" else cell.above
        inputs, output = cell.vector(cell.parents[0]), list(cell.place.values())[-1]
        labels = counted("neuron" if matrix == "down" else "channel", len(inputs))
        return linear(cell, f"{owner}.{matrix}", output, inputs, labels)

    return work


def activated(cell: Cell) -> Working:
    """The bend between two matrices."""
    owner = cell.module(cell.above)
    assert isinstance(owner, FeedForward | Head)
    channel = list(cell.place.values())[-1]
    before = [cell.vector(parent)[channel] for parent in cell.parents]
    bent = owner.activation(before[0])
    function = activation_name(owner, cell.config)
    formula, numbers = call(function, symbol("x")), call(function, number(before[0].item()))
    if len(before) == 2:  # SwiGLU: the bent gate times what goes through
        formula, numbers = row(formula, "·", symbol("u")), row(numbers, "·", signed(before[1].item()))
    factors = (bent.item(), *(through.item() for through in before[1:]))
    return Working(formula, numbers, math.prod(factors), (Term(cell.parents[-1], factors),))


def activation_name(owner: FeedForward | Head, config: ModelConfig) -> str:
    """What the bend is called."""
    return "tanh" if owner.activation is torch.tanh else {"swiglu": "silu"}.get(config.activation, config.activation)


def added(cell: Cell) -> Working:
    """The sum of the tensors before."""
    channel = cell.place["channel"]
    terms = tuple(Term(parent, (cell.vector(parent)[channel].item(),)) for parent in cell.parents)
    first, *others = (symbol(kind_of(parent)) for parent in cell.parents)
    formula = row(first, *(part for other in others for part in ("+", other)))
    return Working(formula, total_of(terms), sum(term.value for term in terms), terms)


def normalized(cell: Cell) -> Working:
    """A channel without the token's mean, over its deviation; RMSNorm takes no mean away."""
    norm = cell.module(cell.above)
    assert isinstance(norm, LayerNorm | RMSNorm)
    x = cell.vector(cell.parents[0])
    value = x[cell.place["channel"]].item()
    mean = x.mean().item() if isinstance(norm, LayerNorm) else 0.0
    spread = ((x - mean) ** 2).mean().item()
    letter, epsilon = at(symbol("x"), "c"), symbol("ε")
    below = root(row(symbol("variance" if isinstance(norm, LayerNorm) else "mean of x²"), "+", epsilon))
    numbers_below = root(row(number(spread), "+", number(norm.epsilon)))
    above, numbers_above = letter, number(value)
    if isinstance(norm, LayerNorm):
        above, numbers_above = row(letter, "−", symbol("mean")), row(number(value), "−", signed(mean))
    result = (value - mean) / math.sqrt(spread + norm.epsilon)
    terms = (Term("x", (value,)), Term("mean", (-mean,)))
    return Working(fraction(above, below), fraction(numbers_above, numbers_below), result, terms)


def gained(cell: Cell) -> Working:
    """The normalized channel times its learned gain, plus its learned bias; before that, with pre-norm, a sum."""
    if len(cell.parents) == 2:
        return added(cell)
    norm = cell.module(cell.parents[0].removesuffix(".normalized"))
    assert isinstance(norm, LayerNorm | RMSNorm)
    channel = cell.place["channel"]
    terms = [Term("gain", (norm.weight[channel].item(), cell.vector(cell.parents[0])[channel].item()))]
    formula = row(at(symbol("γ"), "c"), "·", at(symbol("n"), "c"))
    if isinstance(norm, LayerNorm) and norm.bias is not None:
        terms.append(Term("bias", (norm.bias[channel].item(),)))
        formula = row(formula, "+", at(symbol("β"), "c"))
    return Working(formula, total_of(terms), sum(term.value for term in terms), tuple(terms))


def embedded(cell: Cell) -> Working:
    """A number of the token's row in the table, times the root of the width."""
    stack = cell.module(cell.above)
    assert isinstance(stack, Stack)
    number_of = cell.trace.ids["source" if cell.above == "encoder" else "target"][cell.token]
    entry = stack.embedding.weight[number_of, cell.place["channel"]].item()
    formula, terms = at(symbol("E"), str(number_of), "c"), (Term(f"row {number_of}", (entry, stack.embedding.scale)),)
    if stack.embedding.scale == 1:
        return Working(formula, number(entry), entry, terms)
    width = root(number(cell.config.d_model))
    return Working(row(formula, "·", width), total_of(terms), terms[0].value, terms)


def table_row(cell: Cell, table: nn.Embedding, place: int) -> Working:
    """A number that was learned."""
    entry = table.weight[place, cell.place["channel"]].item()
    return Working(at(symbol("P"), str(place), "c"), number(entry), entry, (Term(f"row {place}", (entry,)),))


def segment(cell: Cell) -> Working:
    """All tokens are of the first segment."""
    table = cell.module(cell.name)
    assert isinstance(table, nn.Embedding)
    return table_row(cell, table, 0)


def positioned(cell: Cell) -> Working:
    """A wave at the token's place: the faster, the lower the channel; or a learned number."""
    module = cell.module(cell.name)
    if isinstance(module, LearnedPosition):
        return table_row(cell, module.table, cell.token)
    if cell.config.position == "rotary":
        size, base, pair, wave = cell.config.head_size, cell.config.rotary_base, cell.place["pair"], cell.place["part"]
        function = ("cos", "sin")[wave]
    else:
        size, base, pair, wave = cell.config.d_model, 10_000.0, *divmod(cell.place["channel"], 2)
        function = ("sin", "cos")[wave]
    letters = power(number(base, 6), fraction(symbol("2i"), symbol("size")))
    numbers = power(number(base, 6), fraction(number(2 * pair), number(size)))
    angle = cell.token / base ** (2 * pair / size)
    value = math.sin(angle) if function == "sin" else math.cos(angle)
    formula = call(function, fraction(symbol("place"), letters))
    return Working(formula, call(function, fraction(number(cell.token), numbers)), value, (Term("angle", (angle,)),))


def masked(cell: Cell) -> Working:
    """1 where a query may look, 0 where it may not."""
    query, key = cell.place["query"], cell.place["key"]
    if cell.name.startswith("decoder") and ".cross_attention." not in cell.name:
        formula, seen = symbol("1 if the key stands no later than the query, else 0"), key <= query
        numbers = symbol(f"key {key} {'≤' if seen else '>'} query {query}")
    else:
        formula, seen, numbers = symbol("1: every token may be seen"), True, number(1)
    return Working(formula, numbers, float(seen), ())


def pooled(cell: Cell) -> Working:
    """One vector for the whole text: the first token's, or the mean of all."""
    column = cell.part(cell.parents[0], channel=cell.place["channel"])
    tokens = cell.trace.tokens["source"]
    if cell.config.pool == "first":
        return Working(
            at(symbol("x"), "0", "c"),
            number(column[0].item()),
            column[0].item(),
            (Term(tokens[0], (column[0].item(),)),),
        )
    terms = tuple(Term(token, (value,)) for token, value in zip(tokens, column.tolist(), strict=True))
    formula = fraction(total("t", at(symbol("x"), "t", "c")), symbol("T"))
    return Working(formula, fraction(total_of(terms), number(len(terms))), column.mean().item(), terms)


WORKINGS: dict[str, Callable[[Cell], Working]] = {
    "embedding": embedded,
    "position": positioned,
    "segment": segment,
    "sum": added,
    "embedding_norm": gained,
    "normalized": normalized,
    "norm": gained,
    "query": projected("query"),
    "queries": projected("query"),
    "key": projected("key"),
    "keys": projected("key"),
    "values": projected("value"),
    "mask": masked,
    "scores": score,
    "weights": weight,
    "head_outputs": head_output,
    "attention": joined,
    "cross_attention": joined,
    "added": added,
    "attention_add_norm": gained,
    "cross_attention_add_norm": gained,
    "gate": fed_forward("gate"),
    "up": fed_forward("up"),
    "inner": activated,
    "feed_forward": fed_forward("down"),
    "feed_forward_add_norm": gained,
    "pooled": pooled,
    "dense": fed_forward("dense"),
    "activated": activated,
    "logits": fed_forward("project"),
}
