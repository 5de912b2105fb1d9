"""The exercise `label-smoothing`: the loss."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batches import IGNORE, Batch
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call


def reference(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The loss as train/loss.py computes it."""
    return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)


def cases() -> list[Case]:
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


RESULT = "-((1 - smoothing) * right + smoothing * uniform).sum()"
MISTAKES = (
    Mistake(
        "Padding is not ignored",
        "Positions whose target is -100 do not count: leave them out before you sum.",
        "    counts = targets != -100  # (N,)\n",
        "    counts = torch.ones_like(targets, dtype=torch.bool)\n    targets = targets.clamp(min=0)\n",
    ),
    Mistake(
        "Targets of -100 are looked up",
        "-100 is no id: leave these positions out before you pick the right tokens.",
        """    log_probabilities = logits.log_softmax(dim=-1)[counts]  # (M, V)
    right = log_probabilities.gather(1, targets[counts][:, None]).squeeze(1)  # (M,)
""",
        """    log_probabilities = logits.log_softmax(dim=-1)
    right = log_probabilities.gather(1, targets[:, None]).squeeze(1)
""",
    ),
    Mistake(
        "The sign is missing",
        "log p is negative; the loss is -log p, so that a smaller one is better.",
        RESULT,
        "((1 - smoothing) * right + smoothing * uniform).sum()",
    ),
    Mistake(
        "It is a mean, not a sum",
        "The caller divides by the number of targets of the whole step. A mean of means would be wrong.",
        ").sum()",
        ").mean()",
    ),
    Mistake(
        "Probabilities are used instead of their logarithms",
        "Cross-entropy is -log p of the right token: log_softmax, not softmax.",
        "logits.log_softmax(dim=-1)",
        "logits.softmax(dim=-1)",
    ),
    Mistake(
        "The softmax is missing",
        "Logits are not log-probabilities yet: log_softmax over the vocabulary.",
        "logits.log_softmax(dim=-1)",
        "logits",
    ),
    Mistake(
        "The softmax runs over the positions",
        "The probabilities of one position sum to 1 over the vocabulary, the last axis.",
        "log_softmax(dim=-1)",
        "log_softmax(dim=0)",
    ),
    Mistake(
        "Smoothing is ignored",
        "The right token has weight 1 - smoothing; `smoothing` is spread over the vocabulary.",
        RESULT,
        "-right.sum()",
    ),
    Mistake(
        "Every token gets ε instead of ε / V",
        "ε is spread over the vocabulary: all tokens together get it. A mean over the vocabulary, not a sum.",
        "log_probabilities.mean(dim=-1)",
        "log_probabilities.sum(dim=-1)",
    ),
    Mistake(
        "ε is spread over the wrong tokens only",
        "Here, as in PyTorch, the right token gets its share ε / V, too: a mean over the whole vocabulary.",
        "log_probabilities.mean(dim=-1)",
        "(log_probabilities.sum(dim=-1) - right) / (logits.size(-1) - 1)",
    ),
    Mistake(
        "The right token lacks its share of ε",
        "The weights would sum to less than 1: the right token gets 1 - ε, and ε / V like all others.",
        "log_probabilities.mean(dim=-1)",
        "(log_probabilities.sum(dim=-1) - right) / logits.size(-1)",
    ),
    Mistake(
        "The right token keeps weight 1",
        "All weights sum to 1: what the others get is taken from the right token, 1 - smoothing.",
        "(1 - smoothing) * right",
        "right",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """The loss of the demo."""
    from clearhead.train import loss

    def smoothed(objective: loss.Objective, batch: Batch) -> Tensor:
        logits = objective.model.head(objective.model.hidden(**batch.inputs).flatten(0, -2))  # (B*T, V)
        smoothing = objective.train_config.label_smoothing if objective.training else 0.0
        total: Tensor = piece.smoothed_loss(logits.float(), batch.targets.flatten(), smoothing)
        return total

    return [Patch(loss, "LOSSES", {**loss.LOSSES, "cross entropy": smoothed})]


EXERCISE = Exercise(
    name="label-smoothing",
    reference=SimpleNamespace(smoothed_loss=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "logits.log_softmax(dim=-1) are the log p of all tokens: (N, V).",
        "log_p.gather(1, targets[:, None]) picks the right token of each position. First drop those with -100.",
        "The rest of the target is uniform: ε times the mean of log p over the vocabulary.",
    ),
    swap=swap,
    settings="train.label_smoothing=0.1",
)
