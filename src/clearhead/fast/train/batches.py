"""Batches of few shapes: each shape gets a CUDA graph, which must not ask the GPU for a number.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batches import IGNORE, SPARSE, Batch

TARGET_SLOTS = 256  # the number of positions with targets is rounded up to a multiple of this
BLANK_ROWS = 32  # a batch may get one blank row for this many rows


def shapes_of(batch: Batch) -> tuple[object, ...]:
    """What batches that use one CUDA graph have in common."""
    return *batch.shapes(), target_slots(batch)


def target_slots(batch: Batch) -> int:
    """An upper bound of the number of targets: all positions, or fewer if targets are sparse."""
    slots = -(-batch.tokens // TARGET_SLOTS) * TARGET_SLOTS
    return slots if slots < SPARSE * batch.targets.numel() else batch.targets.numel()


def fixed_positions(batch: Batch) -> Tensor | None:
    """The positions of the targets and some others, `target_slots` in all; None if these are all positions."""
    targets = batch.targets.flatten()
    slots = target_slots(batch)
    return None if slots == targets.numel() else (targets == IGNORE).byte().argsort(stable=True)[:slots]


def rounded(batch: Batch) -> Batch:
    """Pad a batch with up to 1/32 blank rows. Batches of a bucket differ by a row: this leaves fewer shapes."""
    rows = batch.targets.size(0)
    more = -rows % 2 ** max(0, (rows // BLANK_ROWS).bit_length() - 1)
    if not more or batch.targets.is_floating_point():  # sentence pairs are compared with each other
        return batch
    inputs = {name: F.pad(t, (0, 0, 0, more)) for name, t in batch.inputs.items()}
    blank = (0, 0) * (batch.targets.dim() - 1) + (0, more)
    return replace(batch, inputs=inputs, targets=F.pad(batch.targets, blank, value=IGNORE))


def overwrite(batch: Batch, other: Batch) -> None:
    """Overwrite the tensors of a batch with those of another one of the same shapes."""
    for name, tensor in batch.inputs.items():
        tensor.copy_(other.inputs[name])
    batch.targets.copy_(other.targets)
