"""Text to class, text to vector: what encoders make of texts.

A text that is longer than `data.max_length` is read in windows, and what they say is averaged by their length.

Shapes: B texts, N windows, C classes, D model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.batching import Watch, batches_of
from clearhead.model import EncoderOnly
from clearhead.runs import Run


@dataclass(frozen=True)
class Classified:
    """The class of a text, and how likely each one is."""

    label: str
    probabilities: dict[str, float]


def classify(run: Run, texts: Sequence[str], watch: Watch = iter) -> list[Classified]:
    """The class of each text."""
    require(
        len(run.labels) == run.recipe.model.classes,
        f"{run.folder / 'facts.json'} names {len(run.labels)} classes, and the model has {run.recipe.model.classes}; "
        "take it from a copy, or train again",
    )
    found = []
    for row in sentence_outputs(run, texts, watch).softmax(-1).tolist():
        probabilities = dict(zip(run.labels, row, strict=True))
        found.append(Classified(max(probabilities, key=lambda label: probabilities[label]), probabilities))
    return found


def embed(run: Run, texts: Sequence[str], watch: Watch = iter) -> Tensor:
    """A vector of length 1 for each text, (B, D): the dot product of two is their similarity."""
    return torch.nn.functional.normalize(sentence_outputs(run, texts, watch), dim=-1)


@torch.inference_mode()
def sentence_outputs(run: Run, texts: Sequence[str], watch: Watch = iter) -> Tensor:
    """What an encoder says of each text, (B, C) or (B, D); of a long one, the mean of its windows by their length."""
    model, tokenizer, most = run.model, run.tokenizers.target, run.recipe.data.max_length - 2
    assert isinstance(model, EncoderOnly)
    for number, text in enumerate(texts, 1):
        require(bool(text.strip()), f"text {number:,} is empty: there is nothing to read; leave it out")
    windows: list[list[int]] = []
    owners: list[int] = []
    for number, whole in enumerate(tokenizer.encode_batch(texts)):
        for begin in range(0, len(whole) or 1, most):  # a text may be without a token: control characters, say
            windows.append([tokenizer.start, *whole[begin : begin + most], tokenizer.end])
            owners.append(number)
    config = run.recipe.model
    values = torch.zeros(len(windows), config.classes if config.head == "classes" else config.d_model)  # (N, C or D)
    for members, ids, real in watch(batches_of(windows, tokenizer.pad, run.device)):
        values[members] = model(ids, real).float().cpu()
    lengths = torch.tensor([float(len(window)) for window in windows])[:, None]  # (N, 1)
    owner = torch.tensor(owners, dtype=torch.long)
    sums, weights = (t.new_zeros(len(texts), t.size(1)).index_add(0, owner, t) for t in (values * lengths, lengths))
    return sums / weights
