"""What a model is to make small: one number for each task, summed over what there is to learn.

Shapes: B batch, T tokens, D model, N targets to learn, V choices (words or classes).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import Recipe
from clearhead.data.batches import IGNORE, Batch
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly

SPARSE = 0.5  # below this part of targets to learn, logits are computed for those alone


class Objective(nn.Module):
    """A model together with its loss, so that whoever wraps it for several devices wraps both."""

    def __init__(self, model: EncoderDecoder | DecoderOnly | EncoderOnly, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.task, self.train_config = model, recipe.data.task, recipe.train

    def forward(self, batch: Batch) -> Tensor:
        """The sum of the losses of all targets of a batch: divide by their number, over all batches of a step."""
        if self.task == "similarity":
            loss = self.similarity(self.model(**batch.inputs), batch.targets)
            return loss if batch.tokens else 0 * loss  # a blank batch has sentences, but none to learn from
        hidden = self.model.hidden(**batch.inputs).flatten(0, -2)  # (B, T, D) -> (B*T, D)
        targets = batch.targets.flatten()
        if batch.tokens < SPARSE * targets.numel():  # masked words, answers: do not compute logits nobody asks for
            learned = (targets != IGNORE).nonzero().squeeze(1)
            hidden, targets = hidden[learned], targets[learned]
        smoothing = self.train_config.label_smoothing if self.training else 0.0
        logits = self.model.head(hidden).float()  # (N, V)
        return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)

    def similarity(self, vectors: Tensor, scores: Tensor) -> Tensor:
        """Of sentence vectors (first ones, second ones, negatives) and how close first and second are (B,)."""
        vectors = F.normalize(vectors.float(), dim=-1)
        first, second = vectors[: len(scores)], vectors[len(scores) :]
        if self.train_config.similarity == "regression":
            return (F.cosine_similarity(first, second[: len(scores)]) - scores).square().sum()
        logits = first @ second.T / self.train_config.temperature  # each first one among all others: which is its own?
        return F.cross_entropy(logits, torch.arange(len(first), device=logits.device), reduction="sum")
