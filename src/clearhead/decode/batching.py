"""Rows of ids in batches: those of similar lengths share one, so little is padding.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clearhead.data.plan import length_buckets, plan

BATCH_TOKENS = 4096  # of one batch on a CPU, padding included
GPU_BATCH_TOKENS = 4 * BATCH_TOKENS  # twice as fast there as with 4096; still more gain little and take memory


class Rows(NamedTuple):
    """Some of the rows."""

    members: list[int]  # which they are
    ids: Tensor  # (B, T)
    real: Tensor  # (B, T) True where there is a token, False where there is padding


Watch = Callable[[Iterable[Rows]], Iterable[Rows]]  # sees batches go by, and may draw a bar


def batches_of(rows: Sequence[Sequence[int]], pad: int, device: torch.device, left: bool = False) -> Iterator[Rows]:
    """All rows in batches of similar lengths, padded on the right, or on the left as prompts are."""
    if not rows:
        return
    lengths = np.array([len(row) for row in rows])
    budget = max(BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS, int(lengths.max()))
    for members, (width,) in plan(length_buckets(lengths[:, None], budget), budget, None):
        places, sizes = torch.arange(width), torch.from_numpy(lengths[members])[:, None]
        real = places >= width - sizes if left else places < sizes
        ids = torch.full(real.shape, pad)
        ids[real] = torch.tensor([number for member in members for number in rows[member]])
        yield Rows(members.tolist(), ids.to(device), real.to(device))
