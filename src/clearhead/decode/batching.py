"""Padded batches: sequences of similar lengths share one, so that little of it is padding.

Shapes: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clearhead.data.plan import length_buckets, plan

BATCH_TOKENS = 4096  # of one batch on a CPU, padding included
GPU_BATCH_TOKENS = 4 * BATCH_TOKENS  # twice as fast there as 4096; larger batches gain little and take memory


class PaddedBatch(NamedTuple):
    """Some of the sequences, padded to the same length."""

    members: list[int]  # their indices among all sequences
    ids: Tensor  # (B, T)
    real: Tensor  # (B, T) True at tokens, False at padding
    padded: bool  # whether there is any padding

    @property
    def mask(self) -> Tensor | None:
        """`real`, or None without padding: attention is faster without a mask."""
        return self.real if self.padded else None


# yields the batches that it is given; the number is that of all their sequences, for a progress bar
Progress = Callable[[Iterable[PaddedBatch], int], Iterable[PaddedBatch]]


def no_progress(batches: Iterable[PaddedBatch], _: int) -> Iterable[PaddedBatch]:
    """Return the batches unchanged, without a progress bar."""
    return batches


def padded_batches(
    sequences: Sequence[Sequence[int]], pad: int, device: torch.device, left: bool = False
) -> Iterator[PaddedBatch]:
    """Yield all sequences in batches of similar lengths, padded on the right, or on the left as prompts are."""
    if not sequences:
        return
    lengths = np.array([len(sequence) for sequence in sequences])
    budget = max(BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS, int(lengths.max()))
    for members, (width,) in plan(length_buckets(lengths[:, None], budget), budget, None):
        columns = torch.arange(width)
        sizes = torch.from_numpy(lengths[members])[:, None]
        real = columns >= width - sizes if left else columns < sizes
        ids = torch.full(real.shape, pad)
        ids[real] = torch.tensor([number for member in members for number in sequences[member]])
        padded = bool((lengths[members] < width).any())
        yield PaddedBatch(members.tolist(), ids.to(device), real.to(device), padded)
