"""Tensors of a trace drawn with characters: strips of channels, grids of weights, neurons, means, probabilities.

Shapes: T tokens, D model, V choices.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text
from torch import Tensor

from clearhead.inspect.graph import parents
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.lens import likeliest
from clearhead.inspect.paths import Node
from clearhead.inspect.trace import Trace
from clearhead.terminal.colour import visible
from clearhead.terminal.drawing import (
    LABEL,
    bar,
    cell_size,
    grid,
    indented,
    label,
    plain_table,
    side_by_side,
    sparkline,
)

MOST_TOKENS = 60  # of a grid or a list; the rest is not drawn


def picture_of(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The picture of a tensor; most kinds have none."""
    kind = kind_at(Node(name, trace.run.recipe.model))
    if kind.name == "weights":
        yield from grids(trace, name, width)
    elif kind.name == "inner":
        yield from neurons(trace, name)
    elif kind.picture.view == "addnorm":
        yield spreads(trace, residual_columns(trace, name))
    elif kind.picture.view in ("embedding", "position"):
        if kind.axes[-1] == "channel":  # rotary positions are cosines and sines of angles, used inside attention
            yield from strips(trace, name, width)
        yield Text("")


def strips(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The first channels of each token's vector as a sparkline, and the norm of the vector."""
    named = trace.named(name)
    tokens = named.labels[named.axes.index("token")][:MOST_TOKENS]
    rows = named.value.reshape(-1, named.value.size(-1))[:MOST_TOKENS]  # (T, D)
    channels = min(rows.size(1), width - LABEL - 18)
    low = rows[:, :channels].min().item()
    high = rows[:, :channels].max().item()
    yield Text(f"  channels 0–{channels - 1}, from {low:.2f} ▁ to {high:.2f} █; norm of the vector", style="dim")
    for token, row in zip(tokens, rows, strict=True):
        line = Text.assemble("  ", label(token, LABEL), " ")
        yield line + sparkline(row[:channels], low, high) + Text(f" {row.norm().item():6.2f}")


def grids(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The attention weights of each head as a grid."""
    yield Text("\n  Weights in percent: rows attend to columns; · where the mask forbids it.\n", style="dim")
    weights = trace.named(name)
    mask = trace[Node(name, trace.run.recipe.model).beside("mask")]
    rows, columns = (labels[:MOST_TOKENS] for labels in weights.labels[2:])
    beside = min(LABEL, max(len(visible(title).strip()) for title in (*weights.labels[1], *rows))) + 1
    sizes = (beside, cell_size(len(columns), width - beside))
    drawn = [
        grid(title, head[:MOST_TOKENS, :MOST_TOKENS], seen[:MOST_TOKENS, :MOST_TOKENS], rows, columns, sizes)
        for title, head, seen in zip(weights.labels[1], weights.value[0], mask[0], strict=True)
    ]
    yield from side_by_side(drawn, width)


def neurons(trace: Trace, name: str) -> Iterator[RenderableType]:
    """The share of neurons that are positive, and the most active neurons, for each token.

    By value, not by size: far below 0, an activation such as GELU has a floor, and a neuron there is off.
    """
    yield Text(f"\n  {'':{LABEL}} above 0{'':14}the most active neurons", style="dim")
    named = trace.named(name)
    for token, row in list(zip(named.labels[1], named.value[0], strict=True))[:MOST_TOKENS]:
        active = (row > 0).float().mean().item()
        best = row.topk(min(3, len(row))).indices.tolist()
        strongest = "".join(f"  {n:>4}: {row[n].item():5.2f}" for n in best)
        yield Text.assemble("  ", label(token, LABEL), f" {active:>7.0%} ", bar(active, 11), strongest)
    yield Text("")


def residual_columns(trace: Trace, add_norm: str) -> dict[str, str]:
    """The tensors of a residual connection in the order of computing: title -> name."""
    config = trace.run.recipe.model
    if config.norm_order == "post":
        stream, sublayer = parents(f"{add_norm}.added", config)
        return {"x": stream, "sublayer": sublayer, "sum": f"{add_norm}.added", "norm": add_norm}
    stream, sublayer = parents(add_norm, config)
    return {"x": stream, "norm": f"{add_norm}.norm", "sublayer": sublayer, "sum": add_norm}


def spreads(trace: Trace, columns: dict[str, str]) -> RenderableType:
    """Mean and standard deviation of each token's vector in several tensors: title -> name."""
    table = plain_table("mean ± std", *columns)
    tokens = trace.named(next(iter(columns.values()))).labels[1]
    for place, token in enumerate(tokens[:MOST_TOKENS]):
        vectors = [trace[column][0, place] for column in columns.values()]
        cells = [f"{v.mean().item():z.2f} ± {v.std(correction=0).item():.2f}" for v in vectors]
        table.add_row(label(token, LABEL), *cells)
    return indented(table, above=1)


def bars(logits: Tensor, words: tuple[str, ...], spaces: bool = False) -> Iterator[RenderableType]:
    """The five likeliest choices (V), with bars; of tokens, `spaces` are visible."""
    for word, probability in likeliest(logits, words):
        yield Text.assemble("  ", label(word, 16, spaces), f" {probability:6.1%} ") + bar(probability, 40)
