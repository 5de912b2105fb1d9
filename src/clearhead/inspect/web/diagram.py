"""What the diagram of the first screen draws: the tensor in each box of the model, small, and the likeliest outputs.

Shapes: T tokens, D channels, H heads, S keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clearhead.inspect.names import axes_of, names_of, side_of
from clearhead.inspect.passes import Passes
from clearhead.inspect.paths import block_of, block_output, kind_of
from clearhead.inspect.trace import Trace, vocabulary

LANES = 24  # tokens of a stack that are drawn, one lane each
CHANNELS = 16  # of a vector in a box
CANDIDATES = 6  # for the next token
OUTSIDE = ("embedding", "position", "embedding_norm", "norm", "pooled")
INSIDE = ("weights", "inner", "norm", "added")


def draw_diagram(passes: Passes, trace_id: str, layer: int | None, first: int) -> dict[str, Any]:
    """The tensors of all boxes for the LANES tokens from `first` on, and the likeliest outputs at these tokens.

    Of all blocks but `layer` only the output is drawn; None: all blocks are drawn.
    """
    run = passes[trace_id].run()
    names = [name for name in names_of(run.model, run.recipe.model) if is_drawn(name, layer)]
    part = passes.part(trace_id, *names, *(["head.logits"] if run.recipe.model.head == "vocabulary" else []))
    starts = {side: max(0, min(first, len(ids) - LANES)) for side, ids in part.ids.items()}
    boxes = {name: box for name in names if (box := draw_box(part, name, starts))}
    return {"first": starts, "boxes": boxes, "outputs": outputs(part, starts)}


def is_drawn(name: str, layer: int | None) -> bool:
    """Whether the diagram has a box with this tensor."""
    if name.startswith("head."):
        return False
    if ".blocks." not in name:
        return name.count(".") < 2 and kind_of(name) in OUTSIDE
    block = block_of(name)
    is_open = layer is None or block.endswith(f".{layer}")
    return name == block_output(block) or (is_open and (kind_of(name) in INSIDE or name.endswith("_add_norm")))


def draw_box(part: Trace, name: str, starts: dict[str, int]) -> dict[str, Any] | None:
    """A tensor without its batch axis: of each vector CHANNELS numbers, of attention all weights."""
    config = part.run.recipe.model
    value = part[name]
    axes = axes_of(name, value.dim(), config)
    if axes[0] == "batch":
        value = value[0]
        axes = axes[1:]
    if axes[-1] in ("pair", "part"):
        return None  # the angles of rotary positions are no vectors of tokens
    for place, axis in enumerate(axes):
        if side := side_of(name, axis, config):
            value = value.narrow(place, starts[side], min(LANES, value.size(place)))
    if axes[-1] == "neuron":
        value = pooled(value, lambda group: group.amax(-1, keepdim=True))  # the lowest activation means "off"
    elif axes[-1] != "key":
        value = pooled(value, strongest)
    return {"shape": list(value.shape), "data": rounded(value.flatten())}


def pooled(value: Tensor, choose: Callable[[Tensor], Tensor]) -> Tensor:
    """(..., D) -> (..., CHANNELS): of neighbouring channels the chosen one."""
    if value.size(-1) <= CHANNELS:
        return value
    return torch.cat([choose(group) for group in value.tensor_split(CHANNELS, dim=-1)], dim=-1)


def strongest(group: Tensor) -> Tensor:
    """(..., D) -> (..., 1): the number with the largest absolute value."""
    return group.gather(-1, group.abs().argmax(-1, keepdim=True))


def rounded(value: Tensor) -> list[float]:
    """Numbers with three decimals, which are short as JSON."""
    return value.double().mul(1000).round().div(1000).tolist()


def outputs(part: Trace, starts: dict[str, int]) -> list[list[tuple[str, float]]]:
    """The likeliest tokens at each lane with their probabilities; none without a vocabulary to choose from."""
    if "head.logits" not in part or part["head.logits"].dim() < 3:
        return []
    start = starts["target" if "target" in starts else "source"]
    logits = part["head.logits"][0, start : start + LANES]
    best = logits.softmax(-1).topk(min(CANDIDATES, logits.size(-1)))
    names = vocabulary(part.run.tokenizers.target, logits.size(-1))
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [[(names[n], p) for n, p in zip(ids, values, strict=True)] for ids, values in rows]
