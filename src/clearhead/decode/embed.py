"""Text to class, text to vector: what encoders compute from texts.

A text that is longer than `data.max_length` is read in windows, whose outputs are averaged, weighted by their lengths.

Shapes: B texts, N windows, C classes, D model.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import require
from clearhead.decode.batching import Progress, no_progress, padded_batches
from clearhead.decode.steps import run_steps
from clearhead.model import EncoderOnly
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classified:
    """The class of a text, and the probability of each class."""

    label: str
    probabilities: dict[str, float]


def classify(run: Run, texts: Sequence[str], progress: Progress = no_progress) -> list[Classified]:
    """Return the most likely class of each text, and all probabilities."""
    return run_steps(classify_steps(run, texts, progress))


def classify_steps(
    run: Run, texts: Sequence[str], progress: Progress = no_progress
) -> Generator[None, None, list[Classified]]:
    """Classify texts: yield after each batch, return the class of each text."""
    require(
        len(run.labels) == run.recipe.model.classes,
        f"{run.folder / 'facts.json'} names {len(run.labels)} classes, and the model has {run.recipe.model.classes}; "
        "take it from a copy, or train again",
    )
    logits = yield from encode_steps(run, texts, progress)
    found = []
    for row in logits.softmax(-1).tolist():
        probabilities = dict(zip(run.labels, row, strict=True))
        found.append(Classified(max(probabilities, key=lambda label: probabilities[label]), probabilities))
    return found


def embed(run: Run, texts: Sequence[str], progress: Progress = no_progress) -> Tensor:
    """Return a vector of length 1 for each text, (B, D): the dot product of two is their cosine similarity."""
    return run_steps(embed_steps(run, texts, progress))


def embed_steps(run: Run, texts: Sequence[str], progress: Progress = no_progress) -> Generator[None, None, Tensor]:
    """Embed texts: yield after each batch, return a vector of length 1 for each text, (B, D)."""
    vectors = yield from encode_steps(run, texts, progress)
    return F.normalize(vectors, dim=-1)


@torch.inference_mode()
def encode_steps(run: Run, texts: Sequence[str], progress: Progress) -> Generator[None, None, Tensor]:
    """Encode texts: yield after each batch, return the output for each text, logits (B, C) or vectors (B, D)."""
    model = run.model
    assert isinstance(model, EncoderOnly)
    for number, text in enumerate(texts, 1):
        require(bool(text.strip()), f"text {number:,} is empty: there is nothing to read; leave it out")
    windows, owners = cut_into_windows(run.tokenizers.target, texts, run.recipe.data.max_length)
    config = run.recipe.model
    outputs = torch.zeros(len(windows), config.classes if config.head == "classes" else config.d_model)  # (N, C or D)
    for batch in progress(padded_batches(windows, run.tokenizers.target.pad, run.device), len(windows)):
        outputs[batch.members] = model(batch.ids, batch.real).float().cpu()
        yield
    lengths = torch.tensor([float(len(window)) for window in windows])[:, None]  # (N, 1)
    return sum_by_owner(outputs * lengths, owners, len(texts)) / sum_by_owner(lengths, owners, len(texts))


def cut_into_windows(tokenizer: Tokenizer, texts: Sequence[str], length: int) -> tuple[list[list[int]], list[int]]:
    """Cut the ids of texts into windows of at most `length`; return them, and the number of the text each is from."""
    inside = length - 2  # between start and end token
    windows: list[list[int]] = []
    owners: list[int] = []
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        for begin in range(0, len(ids) or 1, inside):  # a text may have no token: one of control characters, say
            windows.append([tokenizer.start, *ids[begin : begin + inside], tokenizer.end])
            owners.append(number)
    return windows, owners


def sum_by_owner(values: Tensor, owners: Sequence[int], count: int) -> Tensor:
    """Add up the rows of (N, ...) that belong to the same text: (B, ...)."""
    return values.new_zeros(count, values.size(1)).index_add(0, torch.tensor(owners, dtype=torch.long), values)
