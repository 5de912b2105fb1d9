"""The exercise `greedy`: always the most likely token."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from clearhead.decode import search
from clearhead.decode.steps import StopCriteria
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.learn.prefixes import START, NextLogits, PrefixDecoder, make_next_logits, next_logits_of
from clearhead.model import EncoderDecoder


def reference(next_logits: NextLogits, prompt: Tensor, end: int, pad: int, most: int) -> Tensor:
    """The project's own greedy search."""
    decoder = PrefixDecoder(next_logits)
    return torch.stack(list(search.stream(decoder, decoder.start(prompt), StopCriteria((end,), pad, most))), dim=1)


def cases() -> list[Case]:
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


MISTAKES = (
    Mistake(
        "The prompt is part of the result",
        "Only what is new is returned: cut off the prompt.",
        "ids[:, prompt.size(1) :]",
        "ids",
    ),
    Mistake(
        "Sentences go on after their end",
        "Remember which rows have ended, and write `pad` into these.",
        "        best = torch.where(ended, pad, best)\n",
        "",
    ),
    Mistake(
        "The search stops when the first sentence has ended",
        "The others are not finished yet: stop when all have ended.",
        "ended.all()",
        "ended.any()",
    ),
    Mistake(
        "The search never stops early",
        "When all sentences have ended, only padding would follow: stop.",
        "        if ended.all():\n            break\n",
        "",
    ),
    Mistake(
        "The model reads only the newest token",
        "next_logits needs everything so far: the prompt and all tokens that were chosen.",
        "next_logits(ids)",
        "next_logits(ids[:, -1:])",
    ),
    Mistake(
        "The least likely token is taken",
        "The largest logit belongs to the most likely token: argmax.",
        "argmax(dim=-1)",
        "argmin(dim=-1)",
    ),
    Mistake(
        "One token too few",
        "`most` is the number of new tokens; the prompt does not count.",
        "range(most)",
        "range(most - 1)",
    ),
    Mistake(
        "One token too many",
        "`most` is the number of new tokens.",
        "range(most)",
        "range(most + 1)",
    ),
    Mistake(
        "The end token is repeated",
        "After the first end token comes `pad`.",
        "torch.where(ended, pad, best)",
        "torch.where(ended, end, best)",
    ),
    Mistake(
        "The last end token is missing",
        "The end token is part of the result: append it before the search stops.",
        "        best = torch.where(ended, pad, best)\n        ids = torch.cat([ids, best[:, None]], dim=1)\n"
        "        ended = ended | (best == end)\n        if ended.all():\n            break\n",
        "        ended = ended | (best == end)\n        best = torch.where(ended, pad, best)\n        if ended.all():\n"
        "            break\n        ids = torch.cat([ids, best[:, None]], dim=1)\n",
    ),
    Mistake(
        "The end token is replaced by padding",
        "The end token is part of the result; padding comes after it.",
        "        best = torch.where(ended, pad, best)\n        ids = torch.cat([ids, best[:, None]], dim=1)\n"
        "        ended = ended | (best == end)\n",
        "        ended = ended | (best == end)\n        best = torch.where(ended, pad, best)\n"
        "        ids = torch.cat([ids, best[:, None]], dim=1)\n",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Greedy translation."""

    def greedy(model: EncoderDecoder, prefill: search.Prefill, ending: StopCriteria) -> list[search.Hypothesis]:
        _, state = prefill
        prompt = torch.full((state.count.size(0), 1), START)
        found = piece.greedy(next_logits_of(model, state), prompt, ending.end[0], ending.pad, ending.longest)
        rows = [row[: row.index(ending.end[0])] if ending.end[0] in row else row for row in found.tolist()]
        return [search.Hypothesis(row, 0.0, 0.0, True) for row in rows]

    return [Patch(search, "greedy", greedy)]


EXERCISE = Exercise(
    name="greedy",
    reference=SimpleNamespace(greedy=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "A loop: logits of everything so far, argmax over the vocabulary, append with torch.cat.",
        "Keep a boolean tensor `ended` (B,), and write torch.where(ended, pad, best).",
        "In the end cut off the prompt: ids[:, prompt.size(1):].",
    ),
    swap=swap,
    decodes=True,
    gradient=False,
)
