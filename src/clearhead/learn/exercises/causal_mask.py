"""The exercise `causal-mask`: which token may attend to which."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.model.attention import Attention, causal_mask
from clearhead.model.cache import past_mask


def reference(length: int) -> Tensor:
    """The project's own causal mask."""
    return causal_mask(length, torch.device("cpu"))


def padded_reference(real: Tensor) -> Tensor:
    """The project's own mask of a decoder with padding."""
    return past_mask(real, torch.arange(real.size(1)))


def cases() -> list[Case]:
    """Several lengths; padding on the right, on the left, and none."""
    right = torch.tensor([[True, True, True, True], [True, True, False, False]])
    left = torch.tensor([[True, True, True, True, True], [False, False, True, True, True]])
    return [
        call("causal_mask", "four tokens", 4),
        call("causal_mask", "one token", 1),
        call("padded_causal_mask", "no padding", torch.ones(2, 3, dtype=torch.bool)),
        call("padded_causal_mask", "padding on the right", right),
        call("padded_causal_mask", "padding on the left", left),
    ]


TRIANGLE = "torch.ones(length, length, dtype=torch.bool).tril()"
MISTAKES = (
    Mistake(
        "The mask is inverted",
        "True means: may attend. A token may attend to earlier ones, so the lower left triangle is True.",
        TRIANGLE,
        f"~{TRIANGLE}",
    ),
    Mistake(
        "Tokens attend to later ones instead of earlier ones",
        "A row is a query, a column a key. Row t may have True in columns 0 to t: the lower triangle, tril.",
        TRIANGLE,
        "torch.ones(length, length, dtype=torch.bool).triu()",
    ),
    Mistake(
        "A token may not attend to itself",
        "The diagonal belongs to it: the first token has no other key.",
        TRIANGLE,
        "torch.ones(length, length, dtype=torch.bool).tril(-1)",
    ),
    Mistake(
        "A token may see one token too far",
        "Row t ends with column t. If token t saw token t + 1, it would see its own answer.",
        TRIANGLE,
        "torch.ones(length, length, dtype=torch.bool).tril(1)",
    ),
    Mistake(
        "The mask has numbers instead of True and False",
        "Use dtype=torch.bool: a mask of numbers would be added to the scores.",
        TRIANGLE,
        "torch.ones(length, length).tril()",
    ),
    Mistake(
        "The mask has 0 and -inf instead of True and False",
        "Such a mask is added to the scores. Here a mask is boolean: True where a query may attend.",
        TRIANGLE,
        f"torch.zeros(length, length).masked_fill(~{TRIANGLE}, -torch.inf)",
    ),
    Mistake(
        "Padding is not ignored",
        "A key is visible if it is not later and if it is real: combine both with &.",
        "causal_mask(real.size(1)) & real[:, None, None, :]",
        "causal_mask(real.size(1)).expand(real.size(0), 1, -1, -1)",
    ),
    Mistake(
        "Rows of padding are masked instead of columns",
        "Columns are keys, which are attended to: real[:, None, None, :] has the keys on the last axis.",
        "real[:, None, None, :]",
        "real[:, None, :, None]",
    ),
    Mistake(
        "Rows of padding are masked as well as columns",
        "A row that may attend to nothing has a softmax of 0 / 0. Only keys, the columns, are masked.",
        "real[:, None, None, :]",
        "real[:, None, None, :] & real[:, None, :, None]",
    ),
    Mistake(
        "Real tokens are visible even if they are later",
        "Both have to hold: not later, and real. That is &, not |.",
        "causal_mask(real.size(1)) & real",
        "causal_mask(real.size(1)) | real",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """The student's mask wherever the demo's decoder attends causally."""
    attend = Attention.attend

    def masked(
        self: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        own = piece.causal_mask(queries.size(2)) if causal else mask
        return attend(self, queries, keys, values, own, False)

    return [Patch(Attention, "attend", masked)]


EXERCISE = Exercise(
    name="causal-mask",
    reference=SimpleNamespace(causal_mask=reference, padded_causal_mask=padded_reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "For four tokens, row 0 is True False False False, and row 3 is True four times.",
        "torch.ones(T, T, dtype=torch.bool).tril() keeps the lower left triangle and the diagonal.",
        "real[:, None, None, :] is (B, 1, 1, T): it broadcasts over all queries. Combine it with &.",
    ),
    swap=swap,
    gradient=False,
)
