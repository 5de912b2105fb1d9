"""The exercise `greedy`: always the most likely token."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.decode import search
from clearhead.decode.steps import StopCriteria
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.learn.prefixes import START, NextLogits, PrefixDecoder, make_next_logits, next_logits_of
from clearhead.model import EncoderDecoder


def reference(next_logits: NextLogits, prompt: Tensor, end: int, pad: int, most: int) -> Tensor:
    """The project's own greedy search."""
    decoder = PrefixDecoder(next_logits)
    return torch.stack(list(search.stream(decoder, decoder.start(prompt), StopCriteria((end,), pad, most))), dim=1)


REFERENCE = SimpleNamespace(greedy=reference)


def cases() -> list[ExerciseCase]:
    """One sentence, a limit, several sentences that end at different times, a longer prompt."""
    one = torch.tensor([[1]])
    several = torch.tensor([[1], [3], [4], [5]])
    longer = torch.tensor([[1, 4, 2], [1, 5, 3]])
    return [
        call("greedy", "four tokens of one sentence", make_next_logits(8, 0), one, 0, 7, 4),
        call("greedy", "a sentence that ends", make_next_logits(8, 1), one, 0, 7, 20),
        call("greedy", "sentences that end at different times", make_next_logits(8, 2), several, 0, 7, 12),
        call("greedy", "prompts of three tokens", make_next_logits(8, 4), longer, 0, 7, 6),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Greedy translation."""

    def greedy(model: EncoderDecoder, prefill: search.Prefill, ending: StopCriteria) -> list[search.Hypothesis]:
        _, state = prefill
        prompt = torch.full((state.count.size(0), 1), START)
        found = piece.greedy(next_logits_of(model, state), prompt, ending.end[0], ending.pad, ending.longest)
        rows = [row[: row.index(ending.end[0])] if ending.end[0] in row else row for row in found.tolist()]
        return [search.Hypothesis(row, 0.0, 0.0, True) for row in rows]

    return [Patch(search, "greedy", greedy)]
