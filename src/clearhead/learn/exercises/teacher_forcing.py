"""The exercise `teacher-forcing`: inputs and labels, shifted by one place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.data.batches import IGNORE, TokenColumn
from clearhead.data.plan import Ints
from clearhead.data.store import RaggedArray
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call


def reference(sentences: list[list[int]], start: int, end: int, pad: int) -> tuple[Tensor, Tensor]:
    """The project's own shift of a column of sequences that begin with [start]."""
    tokenizer: Any = SimpleNamespace(start=start, end=end, pad=pad)
    values = np.array([n for ids in sentences for n in (start, *ids)] + [start])
    lengths = np.array([len(ids) + 1 for ids in sentences])
    column = TokenColumn(RaggedArray(values, np.cumsum([0, *lengths])), tokenizer, limit=len(values))
    inputs, labels = column.shifted_slices(column.array.offsets[:-1], lengths, int(lengths.max()))
    return torch.from_numpy(inputs), torch.from_numpy(labels)


def cases() -> list[Case]:
    """One sentence, several lengths, other ids of the special tokens."""
    return [
        call("shift", "one sentence", [[11, 12, 13, 14]], 1, 2, 0),
        call("shift", "sentences of several lengths", [[11, 12, 13, 14], [15, 16], [17, 18, 19]], 1, 2, 0),
        call("shift", "other ids of start, end and pad", [[11], [12, 13, 14]], 7, 8, 9),
        call("shift", "a sentence that has 0 as a token", [[0, 5], [5, 0, 5, 0]], 1, 2, 3),
        call("shift", "one id for end and pad, as in GPT-2", [[11, 12], [13]], 1, 2, 2),
    ]


INPUTS = "        inputs[row, : len(ids) + 1] = torch.tensor([start, *ids])\n"
LABELS = "        labels[row, : len(ids) + 1] = torch.tensor([*ids, end])\n"
MISTAKES = (
    Mistake(
        "Inputs and labels are not shifted",
        "At each place the decoder has to predict the token that it has not read yet: inputs begin with start.",
        INPUTS,
        "        inputs[row, : len(ids) + 1] = torch.tensor([*ids, end])\n",
    ),
    Mistake(
        "The shift goes the wrong way",
        "Inputs begin with start and are one place behind the labels, not ahead of them.",
        INPUTS + LABELS,
        "        inputs[row, : len(ids) + 1] = torch.tensor([*ids, end])\n"
        "        labels[row, : len(ids) + 1] = torch.tensor([start, *ids])\n",
    ),
    Mistake(
        "The labels do not end with the end token",
        "Without it, the model never learns to stop.",
        LABELS,
        "        labels[row, : len(ids)] = torch.tensor(ids)\n",
    ),
    Mistake(
        "Padding is not ignored in the labels",
        "Where a sentence has ended, the label is -100, so that the loss leaves it out.",
        "labels = torch.full((len(sentences), length), -100)",
        "labels = torch.full((len(sentences), length), pad)",
    ),
    Mistake(
        "The end token comes after the padding",
        "It follows the last real token of each sentence; -100 comes after it.",
        LABELS,
        "        labels[row, : len(ids)] = torch.tensor(ids)\n        labels[row, -1] = end\n",
    ),
    Mistake(
        "The inputs have the end token, too",
        "After the end token nothing is predicted, so the decoder never has to read it.",
        INPUTS + LABELS,
        INPUTS + "        inputs[row, len(ids) + 1 : len(ids) + 2] = end\n" + LABELS,
    ),
    Mistake(
        "The inputs are padded with -100",
        "-100 is for labels. Inputs are ids that the embedding has a row for: pad.",
        "inputs = torch.full((len(sentences), length), pad)",
        "inputs = torch.full((len(sentences), length), -100)",
    ),
    Mistake(
        "Every token with the id of padding is ignored",
        "Padding is where a sentence has ended, whatever the ids are.",
        "    return inputs, labels\n",
        "    return inputs, labels.masked_fill(labels == 0, -100)\n",
    ),
    Mistake(
        "Every token with the id of padding is ignored, the end token included",
        "Some models have one id for both. Padding is where a sentence has ended, whatever the ids are.",
        "    return inputs, labels\n",
        "    return inputs, labels.masked_fill(labels == pad, -100)\n",
    ),
    Mistake(  # the usual way for sentences of one length
        "The end token of shorter sentences is in the inputs, and padding in the labels",
        "Shifting a padded batch by one place is right only for the longest sentence: fill row by row.",
        "    return inputs, labels\n",
        """    whole = torch.full((len(sentences), length + 1), pad)
    for row, ids in enumerate(sentences):
        whole[row, : len(ids) + 2] = torch.tensor([start, *ids, end])
    return whole[:, :-1], whole[:, 1:]
""",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """The targets of all batches of the demo."""

    def read_shifted(self: TokenColumn, rows: Ints, width: int) -> tuple[Ints, Ints]:
        ids, real = self.read(rows, width)
        sentences = [row[which][1:].tolist() for row, which in zip(ids, real, strict=True)]  # without [start]
        inputs, labels = piece.shift(sentences, self.start, self.end, self.pad)
        missing = width - inputs.size(1)
        padded = torch.nn.functional.pad(inputs, (0, missing), value=self.pad)
        ignored = torch.nn.functional.pad(labels, (0, missing), value=IGNORE)
        return padded.numpy(), ignored.numpy()

    return [Patch(TokenColumn, "read_shifted", read_shifted)]


EXERCISE = Exercise(
    name="teacher-forcing",
    reference=SimpleNamespace(shift=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "For one sentence: inputs are [start, *ids], labels are [*ids, end], each one longer than the sentence.",
        "Begin with torch.full((B, T), pad) and torch.full((B, T), -100), and write each sentence into its row.",
    ),
    swap=swap,
    gradient=False,
)
