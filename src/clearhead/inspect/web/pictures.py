"""What the explorer's page draws besides the tensors of a trace: loss curves, embeddings in the plane, positions.

Shapes: T tokens, D model, K head size, N rows of a table of embeddings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.files import Metrics, is_number
from clearhead.inspect.trace import vocabulary
from clearhead.model.stack import LearnedPosition, RotaryPosition, Stack
from clearhead.text.tokenizer import Tokenizer

MOST_POINTS = 500  # of a curve
MOST_WORDS = 800  # of the map of embeddings, not counting the tokens of the text
NEIGHBOURS = 6
MOST_TOKENS = 24  # different tokens of the text whose neighbours are looked up

Points = list[tuple[int, float]]


def losses(rows: list[Metrics], kind: str) -> Points:
    """The loss over the steps, thinned out to at most MOST_POINTS points and the last."""
    points = [(row["step"], row["loss"]) for row in rows if row["kind"] == kind and is_number(row.get("loss"))]
    each = max(1, math.ceil(len(points) / MOST_POINTS))
    return points[::each] + (points[-1:] if (len(points) - 1) % each else [])


def examples(rows: list[Metrics], keys: Sequence[str], start: str) -> list[str]:
    """The validation texts of the samples in metrics.jsonl, each once, without their start token."""
    texts = [row.get(key) for row in rows if row["kind"] == "sample" for key in keys]
    return list(dict.fromkeys(text.removeprefix(start) for text in texts if text))[:4]


def word_map(stack: Stack, tokenizer: Tokenizer, ids: tuple[int, ...]) -> dict[str, Any]:
    """The embeddings of a text's tokens and of others, projected onto their first two principal components."""
    table = stack.embedding.weight.float()  # (N, D)
    shown = torch.tensor(sorted({*ids, *range(0, len(table), max(1, len(table) // MOST_WORDS))}))
    centred = table[shown] - table[shown].mean(0)
    flat = centred @ leading_directions(centred)
    flat = flat * flat.gather(0, flat.abs().argmax(0)[None]).sign()  # fixes the sign, so that snapshots can be compared
    share = (flat.square().sum() / centred.square().sum()).item()
    names = vocabulary(tokenizer, len(table))
    words = [names[number] for number in shown.tolist()]
    return {"ids": shown.tolist(), "words": words, "points": flat.tolist(), "share": share}


def neighbours(stack: Stack, tokenizer: Tokenizer, ids: tuple[int, ...]) -> dict[str, list[tuple[str, float]]]:
    """The tokens with the highest cosine similarity to each of the first tokens of a text, by id."""
    table = stack.embedding.weight.float()  # (N, D)
    names = vocabulary(tokenizer, len(table))
    asked = list(dict.fromkeys(ids))[:MOST_TOKENS]
    cosines = F.normalize(table[asked], dim=-1) @ table.T / table.norm(dim=-1)
    near = cosines.topk(min(NEIGHBOURS + 1, len(table)))
    return {
        str(own): [(names[i], c) for i, c in zip(row, values, strict=True) if i != own][:NEIGHBOURS]
        for own, row, values in zip(asked, near.indices.tolist(), near.values.tolist(), strict=True)
    }


def leading_directions(centred: Tensor) -> Tensor:
    """The first two principal components of centred rows, (D, 2), by orthogonal iteration: faster than a full SVD."""
    space = centred[:8].T
    for _ in range(12):
        space = torch.linalg.qr(centred.T @ (centred @ space)).Q
    *_, within = torch.linalg.svd(centred @ space, full_matrices=False)  # the largest first
    return space @ within[:2].T


def position_vectors(stack: Stack, count: int) -> Tensor:
    """The vectors of the first positions, (T, D); with rotary positions, the cosines of the angles, (T, K/2)."""
    position = stack.position
    assert position is not None
    if isinstance(position, LearnedPosition):
        count = min(count, len(position.table.weight))
    found = position(torch.arange(count), torch.float32)
    return found[0, 0, 0] if isinstance(position, RotaryPosition) else found
