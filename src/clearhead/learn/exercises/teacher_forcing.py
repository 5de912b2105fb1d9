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
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call


def reference(sentences: list[list[int]], start: int, end: int, pad: int) -> tuple[Tensor, Tensor]:
    """The project's own shift of a column of sequences that begin with [start]."""
    tokenizer: Any = SimpleNamespace(start=start, end=end, pad=pad)
    values = np.array([n for ids in sentences for n in (start, *ids)] + [start])
    lengths = np.array([len(ids) + 1 for ids in sentences])
    column = TokenColumn(RaggedArray(values, np.cumsum([0, *lengths])), tokenizer, limit=len(values))
    inputs, labels = column.shifted_slices(column.array.offsets[:-1], lengths, int(lengths.max()))
    return torch.from_numpy(inputs), torch.from_numpy(labels)


REFERENCE = SimpleNamespace(shift=reference)


def cases() -> list[ExerciseCase]:
    """One sentence, several lengths, other ids of the special tokens."""
    return [
        call("shift", "one sentence", [[11, 12, 13, 14]], 1, 2, 0),
        call("shift", "sentences of several lengths", [[11, 12, 13, 14], [15, 16], [17, 18, 19]], 1, 2, 0),
        call("shift", "other ids of start, end and pad", [[11], [12, 13, 14]], 7, 8, 9),
        call("shift", "a sentence that has 0 as a token", [[0, 5], [5, 0, 5, 0]], 1, 2, 3),
        call("shift", "one id for end and pad, as in GPT-2", [[11, 12], [13]], 1, 2, 2),
    ]


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
