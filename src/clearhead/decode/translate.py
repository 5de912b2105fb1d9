"""Source to target: translations and summaries, by beam search, greedily or by sampling.

A text is translated sentence by sentence if the run was trained on single sentences, or on shorter texts only.

Shapes: B texts.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.batching import Progress, no_progress, padded_batches
from clearhead.decode.beam import beam_steps
from clearhead.decode.defaults import BEAM, LENGTH_PENALTY
from clearhead.decode.limits import tokens_left
from clearhead.decode.sampling import SamplingSettings, row_seeds
from clearhead.decode.search import Hypothesis, Prefill, greedy_steps, sample
from clearhead.decode.steps import Decoder, StopCriteria, run_steps
from clearhead.device import require_memory
from clearhead.fast.choose import decoder_for
from clearhead.model import EncoderDecoder
from clearhead.renamed import old_names
from clearhead.runs import Run
from clearhead.text.sentences import Span, spans_of

EXTRA_TOKENS = 50  # length limit of a translation: tokens of its source + 50, as in the paper

__getattr__ = old_names(__name__, Searching="SearchSettings")


@dataclass(frozen=True)
class SearchSettings:
    """How to find a translation: by beam search, greedily (a beam of 1), or by sampling."""

    beam: int = BEAM  # beam width: hypotheses kept at each step
    length_penalty: float = LENGTH_PENALTY  # above 0 favours longer translations
    nbest: int = 1  # how many translations to return
    choice: SamplingSettings | None = None  # how to sample them; None: search for the best
    seed: int | None = None  # for sampling; None: another one each time
    prefix: str = ""  # what each translation has to begin with
    longest: int = 0  # tokens of a translation at most; 0: as many as its source has, and EXTRA_TOKENS

    def __post_init__(self) -> None:
        require(self.beam >= 1, f"beam = {self.beam}: must be at least 1, which is greedy search")
        require(self.nbest >= 1, f"nbest = {self.nbest}: must be at least 1")
        require(self.longest >= 0, f"longest = {self.longest}: must not be negative; 0 depends on the source")
        require(
            0 <= self.length_penalty <= 10,
            f"length_penalty = {self.length_penalty}: must not be negative, and at most 10; 0 ranks by probability "
            f"alone, the paper uses {LENGTH_PENALTY}",
        )

    @property
    def width(self) -> int:
        """How many rows each text takes."""
        return self.nbest if self.choice else max(self.beam, self.nbest)


@dataclass(frozen=True)
class Translation:
    """A translation (or summary) of a text."""

    text: str
    score: float  # what it is ranked by: log-probability / length penalty
    log_probability: float
    ended: bool = True  # False: it reached the length limit before the end token


@torch.inference_mode()
def translate(
    run: Run, texts: Sequence[str], how: SearchSettings | None = None, progress: Progress = no_progress
) -> list[list[Translation]]:
    """Return the `nbest` translations of each text, best first; a text of spaces only has one empty translation."""
    how = how or SearchSettings()
    spans = split_texts(run, texts)
    first, later = first_and_later(spans)
    of_first = run_steps(translate_spans(run, first, how, progress))
    of_later = run_steps(translate_spans(run, later, replace(how, prefix=""), progress)) if later else []
    return join_spans(spans, of_first, of_later)


def split_texts(run: Run, texts: Sequence[str]) -> list[list[Span]]:
    """Split texts into spans that the model can read: as few as possible, unless it knows single sentences only."""
    limit = (run.longest or run.recipe.data.max_length) - 1  # the end token takes one

    def sizes(parts: list[str]) -> list[int]:
        return [len(ids) for ids in run.tokenizers.source.encode_batch(parts)]

    return spans_of([text.strip() for text in texts], sizes, limit, whole=not run.one_sentence)


def first_and_later(spans: Sequence[Sequence[Span]]) -> tuple[list[str], list[str]]:
    """The first span of each text, which begins with the prefix, and all others."""
    first = [some[0].text for some in spans if some]
    later = [span.text for some in spans for span in some[1:]]
    return first, later


def join_spans(
    spans: Sequence[Sequence[Span]], of_first: Sequence[list[Translation]], of_later: Sequence[list[Translation]]
) -> list[list[Translation]]:
    """Return the translations of each text, given those of the first span of each, and of all others."""
    first = iter(of_first)
    later = iter(of_later)
    results = []
    for some in spans:
        found = [*islice(first, bool(some)), *islice(later, len(some[1:]))]  # for each span, its n best
        joined = [join(parts, some) for parts in zip(*found, strict=False)]
        results.append(joined or [Translation("", 0.0, 0.0)])
    return results


def join(parts: Sequence[Translation], spans: Sequence[Span]) -> Translation:
    """Join the translations of a text's spans."""
    if len(parts) == 1:
        return parts[0]
    text = "".join(part.text + span.space for part, span in zip(parts, spans, strict=True))
    score = sum(part.score for part in parts)
    log_probability = sum(part.log_probability for part in parts)
    return Translation(text, score, log_probability, all(part.ended for part in parts))


def translate_spans(
    run: Run, texts: Sequence[str], how: SearchSettings, progress: Progress = no_progress
) -> Generator[object, None, list[list[Translation]]]:
    """Translate texts that are short enough: yield after each decode step, return the `nbest` of each text.

    Several such generators may take turns on a CPU. On a GPU a batch is not interrupted: all searches of one size share
    their buffers.
    """
    model = run.model
    assert isinstance(model, EncoderDecoder)
    source = run.tokenizers.source
    target = run.tokenizers.target
    sources = [[*ids, source.end] for ids in source.encode_batch(texts)]
    prefix = [target.start, *(target.encode(how.prefix) if how.prefix else [])]
    found: list[list[Translation]] = [[] for _ in sources]
    decoder = decoder_for(model)
    for batch in progress(padded_batches(sources, source.pad, run.device), len(sources)):
        prompt = torch.tensor([prefix], device=run.device).expand(batch.ids.size(0), -1)
        prefill = decoder.start(batch.ids, prompt, batch.mask)
        longest = min(how.longest or sys.maxsize, tokens_left(run.recipe.model, len(prefix)))
        limits = (batch.real.sum(1) + EXTRA_TOKENS).clamp(max=longest)
        seeds = None if how.seed is None else [n for m in batch.members for n in row_seeds(how.seed + m, how.nbest)]
        ending = StopCriteria((target.end,), target.pad, limits)
        steps = search(decoder, prefill, ending, how, seeds)
        hypotheses = run_steps(steps) if run.device.type == "cuda" else (yield from steps)
        decoded = iter(target.decode_batch([[*prefix[1:], *each.ids] for best in hypotheses for each in best]))
        for member, best in zip(batch.members, hypotheses, strict=True):
            found[member] = [Translation(next(decoded), each.score, each.log_probability, each.ended) for each in best]
    return found


def search(
    decoder: Decoder, prefill: Prefill, ending: StopCriteria, how: SearchSettings, seeds: Sequence[int] | None = None
) -> Generator[object, None, list[list[Hypothesis]]]:
    """Return the best hypotheses of each row; a search yields after each step. `seeds`: one for each sampled text."""
    check_memory(prefill[0], how)
    if how.choice:
        logits, state = prefill
        count = logits.size(0)
        rows = torch.arange(count, device=logits.device).repeat_interleave(how.nbest)
        state.select(rows)
        limits = ending.limits(count, logits.device)[rows]
        sampled = sample(decoder, (logits[rows], state), replace(ending, max_tokens=limits), how.choice, seeds)
        groups = [sampled[row : row + how.nbest] for row in range(0, len(sampled), how.nbest)]
        return [sorted(group, key=lambda each: -each.score) for group in groups]
    if how.beam == 1 and how.nbest == 1:
        found = yield from greedy_steps(decoder, prefill, ending)
        return [[each] for each in found]
    return (yield from beam_steps(decoder, prefill, ending, how.width, how.length_penalty, how.nbest))


def check_memory(logits: Tensor, how: SearchSettings) -> None:
    """Refuse a search whose step needs more memory than there is, before the system ends the process."""
    texts, vocabulary = logits.shape
    candidates = 0 if how.choice else min(how.width + 1, vocabulary)
    size = texts * how.width * (4 * vocabulary + 37 * candidates)  # logits; ids, sums and what sorting them takes
    what = f"{'nbest' if how.width == how.nbest else 'beam'} = {how.width:,} for each of {texts:,} texts"
    if logits.device.type == "cpu":  # a GPU refuses by itself
        require_memory(size, "cpu", what, "make it smaller")
