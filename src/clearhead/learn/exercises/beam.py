"""The exercise `beam`: beam search with the length penalty."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from clearhead.decode import beam
from clearhead.decode.defaults import LENGTH_PENALTY
from clearhead.decode.search import Hypothesis, Prefill
from clearhead.decode.steps import StopCriteria
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.learn.prefixes import START, NextLogits, PrefixDecoder, make_next_logits, next_logits_of
from clearhead.model import EncoderDecoder

FLAT = 1.2  # the sharpness of the distributions: lower than for greedy search, so that hypotheses compete


def reference(next_logits: NextLogits, end: int, width: int, most: int, alpha: float) -> tuple[list[int], float]:
    """The project's own beam search."""
    decoder = PrefixDecoder(next_logits)
    empty = torch.zeros(1, 0, dtype=torch.long)
    [[best]] = beam.beam(decoder, decoder.start(empty), StopCriteria((end,), end, most), width, alpha)
    return best.ids, best.score


def cases() -> list[Case]:
    """A beam of 1, wider ones, several penalties, a limit that is reached. Each has a clear winner."""
    return [
        call("beam", "a beam of 1 is greedy search", make_next_logits(6, 1, FLAT), 0, 1, 10, 0.0),
        call("beam", "a beam of 3, no length penalty", make_next_logits(6, 10, FLAT), 0, 3, 8, 0.0),
        call("beam", "a length penalty of 0.6", make_next_logits(6, 8, FLAT), 0, 4, 8, 0.6),
        call("beam", "a length penalty of 2", make_next_logits(6, 1, FLAT), 0, 4, 8, 2.0),
        call("beam", "texts that end early, and better ones that end late", make_next_logits(6, 52, 0.8), 0, 2, 8, 2.0),
        call("beam", "texts that do not end in time", make_next_logits(6, 10, FLAT), 0, 3, 3, 1.0),
    ]


SCORE = "total / ((5 + length) / 6) ** alpha"
MISTAKES = (
    Mistake(
        "Probabilities are added instead of log-probabilities",
        "Probabilities are multiplied, so their logarithms are added: log_softmax.",
        "logits.log_softmax(dim=-1)",
        "logits.softmax(dim=-1)",
    ),
    Mistake(
        "Logits are added instead of log-probabilities",
        "Logits of different steps cannot be compared: log_softmax first.",
        "logits.log_softmax(dim=-1)",
        "logits",
    ),
    Mistake(
        "The score is not divided by the length penalty",
        "Without it, short texts win: divide the log-probability of a complete text by ((5 + length) / 6)^alpha.",
        SCORE,
        "total",
    ),
    Mistake(
        "The score is divided by the length",
        "The length penalty is ((5 + length) / 6)^alpha; with alpha = 0 it is 1.",
        SCORE,
        "total / length",
    ),
    Mistake(
        "The score is divided by length^alpha",
        "The length penalty is ((5 + length) / 6)^alpha, which grows more slowly.",
        SCORE,
        "total / length**alpha",
    ),
    Mistake(
        "The score is multiplied by the length penalty",
        "Log-probabilities are negative: multiplying makes long texts worse still. Divide.",
        SCORE,
        "total * ((5 + length) / 6) ** alpha",
    ),
    Mistake(
        "Each hypothesis is continued by its best token only",
        "All continuations of all hypotheses compete: one may have two places in the next beam, another none.",
        "        longer.sort(reverse=True)\n",
        "        longer = sorted((max(part) for part in zip(*[iter(longer)] * len(scores[0]))), reverse=True)\n",
    ),
    Mistake(
        "The first complete text is returned",
        "A longer text may have a better score: collect the complete ones, and compare them in the end.",
        "score, best = max(complete)",
        "score, best = complete[0]",
    ),
    Mistake(
        "The search stops as soon as there are `width` complete texts",
        "A longer text may still have a better score: go on until `most` tokens.",
        "        beams = [each for each in longer",
        "        if len(complete) >= width:\n            break\n        beams = [each for each in longer",
    ),
    Mistake(
        "Complete texts are continued",
        "Nothing follows the end token: only hypotheses that do not end stay open.",
        "[each for each in longer if each[1][-1] != end][:width]",
        "longer[:width]",
    ),
    Mistake(
        "Complete texts take places in the beam",
        "The `width` best continuations that do not end stay open, however many complete ones are better.",
        "        beams = [each for each in longer if each[1][-1] != end][:width]\n",
        """        beams = [each for each in longer[:width] if each[1][-1] != end]
        if not beams:
            break
""",
    ),
    Mistake(
        "The end token is not counted",
        "The length of a complete text includes its end token.",
        SCORE,
        "total / ((5 + length - (ids[-1] == end)) / 6) ** alpha",
    ),
    Mistake(
        "The ids are not integers",
        "torch.tensor([[]]) has no numbers to tell their type, and becomes float: add dtype=torch.long.",
        ", dtype=torch.long",
        "",
    ),
    Mistake(
        "The end token is part of the result",
        "Remove it, if the best text has one.",
        "best[:-1] if best[-1] == end else best",
        "best",
    ),
    Mistake(
        "The last token is always removed",
        "A text that was cut off at `most` tokens has no end token: it keeps its last one.",
        "best[:-1] if best[-1] == end else best",
        "best[:-1]",
    ),
    Mistake(
        "Texts that do not end in time are lost",
        "After `most` tokens, the open hypotheses are complete, too.",
        "if ids[-1] == end or length == most:",
        "if ids[-1] == end or (length == most and not complete):",
    ),
)


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
    """The same function for ids without the start token."""
    return lambda ids: next_logits(torch.cat([torch.full((max(1, ids.size(0)), 1), START), ids], dim=1))


EXERCISE = Exercise(
    name="beam",
    reference=SimpleNamespace(beam=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Two lists of pairs (number, ids): open hypotheses with their log-probability, complete ones with their score.",
        "All continuations: for each open hypothesis and each token, (total + log p, [*ids, token]). Sort them.",
        "Of the first `width` in that order, those that end are complete. The first `width` that do not stay open.",
    ),
    swap=swap,
    decodes=True,
    gradient=False,
)
