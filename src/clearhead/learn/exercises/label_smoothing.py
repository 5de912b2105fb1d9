"""The exercise `label-smoothing`: the loss."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batches import IGNORE, Batch
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call


def reference(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The loss as train/loss.py computes it."""
    return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)


REFERENCE = SimpleNamespace(smoothed_loss=reference)


def cases() -> list[ExerciseCase]:
    """Without smoothing, with it, and with positions that do not count."""
    logits = torch.randn(6, 10) * 2
    targets = torch.tensor([3, 0, 9, 4, 4, 7])
    ignored = torch.tensor([3, -100, 9, 4, -100, -100])
    return [
        call("smoothed_loss", "one position, no smoothing", logits[:1], targets[:1], 0.0),
        call("smoothed_loss", "several positions, no smoothing", logits, targets, 0.0),
        call("smoothed_loss", "smoothing of 0.1", logits, targets, 0.1),
        call("smoothed_loss", "positions that do not count", logits, ignored, 0.1),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The loss of the demo."""
    from clearhead.train import loss

    def smoothed(objective: loss.Objective, batch: Batch) -> Tensor:
        logits = objective.model.head(objective.model.hidden(**batch.inputs).flatten(0, -2))  # (B*T, V)
        smoothing = objective.train_config.label_smoothing if objective.training else 0.0
        total: Tensor = piece.smoothed_loss(logits.float(), batch.targets.flatten(), smoothing)
        return total

    return [Patch(loss, "LOSSES", {**loss.LOSSES, "cross entropy": smoothed})]
