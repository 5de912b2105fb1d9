"""The exercise `beam`: beam search with the length penalty."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from clearhead.decode import beam
from clearhead.decode.defaults import LENGTH_PENALTY
from clearhead.decode.search import Hypothesis, Prefill
from clearhead.decode.steps import StopCriteria
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.learn.prefixes import START, NextLogits, PrefixDecoder, make_next_logits, next_logits_of
from clearhead.model import EncoderDecoder

FLAT_SHARPNESS = 1.2  # the sharpness of the distributions: lower than for greedy search, so that hypotheses compete


def reference(next_logits: NextLogits, end: int, width: int, most: int, alpha: float) -> tuple[list[int], float]:
    """The project's own beam search."""
    decoder = PrefixDecoder(next_logits)
    empty = torch.zeros(1, 0, dtype=torch.long)
    [[best]] = beam.beam(decoder, decoder.start(empty), StopCriteria((end,), end, most), width, alpha)
    return best.ids, best.score


REFERENCE = SimpleNamespace(beam=reference)


def cases() -> list[ExerciseCase]:
    """A beam of 1, wider ones, several penalties, a limit that is reached. Each has a clear winner."""
    return [
        call("beam", "a beam of 1 is greedy search", make_next_logits(6, 1, FLAT_SHARPNESS), 0, 1, 10, 0.0),
        call("beam", "a beam of 3, no length penalty", make_next_logits(6, 10, FLAT_SHARPNESS), 0, 3, 8, 0.0),
        call("beam", "a length penalty of 0.6", make_next_logits(6, 8, FLAT_SHARPNESS), 0, 4, 8, 0.6),
        call("beam", "a length penalty of 2", make_next_logits(6, 1, FLAT_SHARPNESS), 0, 4, 8, 2.0),
        call("beam", "texts that end early, and better ones that end late", make_next_logits(6, 52, 0.8), 0, 2, 8, 2.0),
        call("beam", "texts that do not end in time", make_next_logits(6, 10, FLAT_SHARPNESS), 0, 3, 3, 1.0),
    ]


def swap(piece: Piece) -> list[Patch]:
    """Translation by beam search, sentence by sentence."""

    def own_beam(model: EncoderDecoder, prefill: Prefill, ending: StopCriteria, width: int) -> list[list[Hypothesis]]:
        _, state = prefill
        found = []
        for row, limit in enumerate(ending.limits(state.count.size(0), state.count.device).tolist()):
            after_start = next_logits_of(model, state, slice(row, row + 1))
            ids, score = piece.beam(with_start(after_start), ending.end[0], width, limit, LENGTH_PENALTY)
            found.append([Hypothesis(ids, score, score, True)])
        return found

    return [Patch(beam, "beam", own_beam)]


def with_start(next_logits: NextLogits) -> NextLogits:
    """Return a function that puts the start token before the ids."""
    return lambda ids: next_logits(torch.cat([torch.full((max(1, ids.size(0)), 1), START), ids], dim=1))
