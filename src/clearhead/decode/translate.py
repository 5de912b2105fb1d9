"""Source to target: translations and summaries, by beam search, greedily or by chance.

A text is translated sentence by sentence if the run has learned from single sentences, or from none that is so long.

Shapes: B texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.batching import Watch, batches_of
from clearhead.decode.limits import room
from clearhead.decode.sampling import Choice, row_seeds
from clearhead.decode.search import Ending, Hypothesis, Prefill, beam, greedy, sample
from clearhead.model import DecoderOnly, EncoderDecoder
from clearhead.runs import Run
from clearhead.text.sentences import spans_of

LONGER = 50  # tokens that a translation may be longer than its source, as in the paper


@dataclass(frozen=True)
class Searching:
    """How to look for a translation: by beam search, greedily with a beam of 1, or by chance."""

    beam: int = 4  # hypotheses side by side
    length_penalty: float = 0.6  # the paper's alpha: above 0, a longer one may be less likely
    nbest: int = 1  # how many to give
    choice: Choice | None = None  # draw them instead
    seed: int | None = None  # of the draw; None: another one each time
    prefix: str = ""  # how each one has to begin

    def __post_init__(self) -> None:
        require(self.beam >= 1, f"beam = {self.beam}: must be at least 1, which is greedy search")
        require(self.nbest >= 1, f"nbest = {self.nbest}: must be at least 1")
        require(
            self.length_penalty >= 0,
            f"length_penalty = {self.length_penalty}: must not be negative; 0 ranks by probability alone",
        )


@dataclass(frozen=True)
class Written:
    """A text that a model wrote."""

    text: str
    score: float  # what it is ranked by; log-probability / length penalty
    log_probability: float
    ended: bool = True  # False: it was cut, because it did not come to an end


@torch.inference_mode()
def translate(run: Run, texts: Sequence[str], how: Searching | None = None, watch: Watch = iter) -> list[list[Written]]:
    """The `nbest` translations (or summaries) of each text, best first; of nothing but spaces, nothing."""
    limit = (run.longest or run.recipe.data.max_length) - 1  # its end is a token, too

    def size(text: str) -> int:
        return len(run.tokenizers.source.encode(text))

    whole = not run.one_sentence
    pieces = [spans_of(text.strip(), size, limit, whole) if text.strip() else [] for text in texts]
    how = how or Searching()
    firsts = iter(translate_pieces(run, [some[0].text for some in pieces if some], how, watch))
    later = [piece.text for some in pieces for piece in some[1:]]
    others = iter(translate_pieces(run, later, replace(how, prefix=""), watch)) if later else iter(())
    results = []
    for some in pieces:
        each = [*islice(firsts, bool(some)), *islice(others, len(some[1:]))]  # of each piece, its n best
        behind = [piece.space for piece in some]
        results.append([join(parts, behind) for parts in zip(*each, strict=False)] or [Written("", 0.0, 0.0)])
    return results


def join(parts: Sequence[Written], behind: Sequence[str]) -> Written:
    """The translations of the pieces of a text as one."""
    if len(parts) == 1:
        return parts[0]
    text = "".join(part.text + spaces for part, spaces in zip(parts, behind, strict=True))
    total = sum(part.log_probability for part in parts)
    return Written(text, sum(part.score for part in parts), total, all(part.ended for part in parts))


def translate_pieces(run: Run, texts: Sequence[str], how: Searching, watch: Watch) -> list[list[Written]]:
    """The translations of texts that are short enough."""
    model, source, target = run.model, run.tokenizers.source, run.tokenizers.target
    assert isinstance(model, EncoderDecoder)
    rows = [[*ids, source.end] for ids in source.encode_batch(texts)]
    prefix = [target.start, *(target.encode(how.prefix) if how.prefix else [])]
    found: list[list[Written]] = [[] for _ in rows]
    for members, ids, real in watch(batches_of(rows, source.pad, run.device)):
        prefill = model.start(ids, torch.tensor([prefix], device=ids.device).expand(len(ids), -1), real)
        longest = room(run, real.sum(1) + LONGER, len(prefix))
        seeds = None if how.seed is None else [n for m in members for n in row_seeds(how.seed + m, how.nbest)]
        for member, best in zip(members, search(run, prefill, longest, how, seeds), strict=True):
            found[member] = [written(target.decode([*prefix[1:], *each.ids]), each) for each in best]
    return found


def search(
    run: Run, prefill: Prefill, longest: Tensor, how: Searching, seeds: Sequence[int] | None = None
) -> list[list[Hypothesis]]:
    """The best hypotheses of each row, however they are looked for; drawn ones with a seed for each."""
    model, target = run.model, run.tokenizers.target
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    ending = Ending((target.end,), target.pad, longest)
    if how.choice:
        logits, state = prefill
        rows = torch.arange(longest.size(0), device=longest.device).repeat_interleave(how.nbest)
        state.select(rows)
        drawn = sample(model, (logits[rows], state), replace(ending, max_tokens=longest[rows]), how.choice, seeds)
        groups = [drawn[row : row + how.nbest] for row in range(0, len(drawn), how.nbest)]
        return [sorted(group, key=lambda each: -each.score) for group in groups]
    if how.beam == 1 and how.nbest == 1:
        return [[each] for each in greedy(model, prefill, ending)]
    return beam(model, prefill, ending, max(how.beam, how.nbest), how.length_penalty, how.nbest)


def written(text: str, hypothesis: Hypothesis) -> Written:
    """A hypothesis as text."""
    return Written(text, hypothesis.score, hypothesis.log_probability, hypothesis.ended)
