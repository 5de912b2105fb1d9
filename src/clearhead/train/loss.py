"""The loss of each task: one number, summed over all targets of a batch.

Shapes: B batch, T tokens, D model, N targets, V choices (tokens or classes), P passes (two with R-Drop).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import Recipe, TrainConfig
from clearhead.data.batches import IGNORE, SPARSE, Batch
from clearhead.model import Model
from clearhead.model.families import Head
from clearhead.tasks import TASKS


class Objective(nn.Module):
    """A model together with its loss: one module, so that DDP and FSDP wrap both."""

    def __init__(self, model: Model, recipe: Recipe) -> None:
        super().__init__()
        self.model = model
        self.train_config = recipe.train
        self.loss = LOSSES[TASKS[recipe.data.task].loss]
        self.cross_entropy = cross_entropy_of  # or a faster one, with the same arguments
        self.positions = positions_with_targets

    def forward(self, batch: Batch) -> Tensor:
        """The sum of the losses of all targets of a batch; the caller divides by the number of targets of a step."""
        return self.loss(self, batch)


def cross_entropy(objective: Objective, batch: Batch) -> Tensor:
    """Cross entropy of the targets (tokens or classes), summed over those that are not IGNORE.

    In training with `train.r_drop`, the loss of R-Drop.
    """
    model = objective.model
    config = objective.train_config
    r_drop = config.r_drop if objective.training else 0.0
    passes = 2 if r_drop else 1  # P, with different dropout
    inputs = {name: torch.cat([t] * passes) for name, t in batch.inputs.items()} if passes > 1 else batch.inputs
    hidden = model.hidden(**inputs).flatten(0, -2)  # (P*B, T, D) -> (P*B*T, D); pooled for classes: (P*B, D)
    hidden = hidden.view(passes, len(hidden) // passes, hidden.size(-1))  # -> (P, B*T, D)
    targets = batch.targets.flatten()
    positions = objective.positions(batch)
    if positions is not None:  # masked tokens, answers: skip the logits that have no target
        hidden = hidden[:, positions]
        targets = targets[positions]
    hidden = hidden.transpose(0, 1).flatten(0, 1)  # (N*P, D): the passes of a target are neighbours
    smoothing = config.label_smoothing if objective.training else 0.0
    return objective.cross_entropy(model.head, hidden, targets, smoothing, r_drop)


def cross_entropy_of(head: Head, hidden: Tensor, targets: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """The summed cross entropy of hidden states (N*P, D) and targets (N,), with R-Drop for two passes."""
    logits = head(hidden).float()  # (N*P, V)
    if r_drop:
        return paired_cross_entropy(logits, targets, smoothing, r_drop)
    return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)


def paired_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float, weight: float) -> Tensor:
    """R-Drop (Liang et al., 2021): half of the paper's loss, for two passes with different dropout, (N*2, V) and (N,).

    The mean of the cross entropies of both, and the divergence of their distributions p and q in both directions:
    KL(p‖q) + KL(q‖p) = Σ (p - q) (log p - log q).
    """
    both = targets.repeat_interleave(2)
    plain = F.cross_entropy(logits, both, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)
    first, second = logits.log_softmax(-1).view(len(targets), 2, logits.size(-1)).unbind(1)  # (N, V)
    divergence = ((first.exp() - second.exp()) * (first - second)).sum(-1)
    return plain / 2 + weight / 4 * divergence.masked_fill(targets == IGNORE, 0.0).sum()


def positions_with_targets(batch: Batch) -> Tensor | None:
    """The positions of the targets if they are few, else None."""
    few = batch.tokens < SPARSE * batch.targets.numel()
    return (batch.targets.flatten() != IGNORE).nonzero().squeeze(1) if few else None


def similarity(objective: Objective, batch: Batch) -> Tensor:
    """Contrastive or regression loss of sentence vectors; the targets say how close first and second sentences are."""
    loss = similarity_of(objective.model(**batch.inputs), batch.targets, objective.train_config)
    return loss if batch.tokens else 0 * loss  # a blank batch has sentences, but no targets


def similarity_of(vectors: Tensor, scores: Tensor, config: TrainConfig) -> Tensor:
    """The loss of vectors (all first sentences, all second sentences, negatives) with similarity scores (B,).

    Regression: the squared error of the cosine. Contrastive: the cross entropy of finding the second sentence of a pair
    among all second sentences and negatives of the batch (InfoNCE).
    """
    vectors = F.normalize(vectors.float(), dim=-1)
    first = vectors[: len(scores)]
    others = vectors[len(scores) :]
    if config.similarity == "regression":
        return (F.cosine_similarity(first, others[: len(scores)]) - scores).square().sum()
    logits = first @ others.T / config.temperature
    return F.cross_entropy(logits, torch.arange(len(first), device=logits.device), reduction="sum")


LOSSES: dict[str, Callable[[Objective, Batch], Tensor]] = {  # by `Task.loss`
    "cross entropy": cross_entropy,
    "similarity": similarity,
}
