"""Beam search, as in the paper.

Shapes: B sentences, W hypotheses of each, C candidates of each hypothesis, T tokens at most, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.defaults import BEAM, LENGTH_PENALTY
from clearhead.decode.sampling import rounded_up
from clearhead.decode.search import Hypothesis, Prefill, worth_shrinking
from clearhead.decode.steps import Decoder, StopCriteria, run_steps, steps_of
from clearhead.model.norm import to_float32


def beam(
    model: Decoder,
    prefill: Prefill,
    ending: StopCriteria,
    width: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """The paper's beam search: the `nbest` best hypotheses of each sentence, by log-probability / length penalty.

    At each step, of the `width` most likely continuations of a sentence's hypotheses, those that end are complete; and
    the `width` most likely that do not end are continued. A sentence is done when `width` hypotheses are complete and
    each is more likely than all open ones, so that short, unlikely texts cannot end the search.

    A sentence is also done as soon as its result is final: with each token the log-probability falls and the penalty
    grows, so the score of a continuation is at most log-probability now / penalty at the length limit. If this bound is
    not above the score of the `nbest`-th complete hypothesis even for the best open one, no result can change.
    """
    return run_steps(beam_steps(model, prefill, ending, width, length_penalty, nbest))


@torch.inference_mode()
def beam_steps(
    model: Decoder,
    prefill: Prefill,
    ending: StopCriteria,
    width: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    nbest: int = 1,
) -> Generator[Beams, None, list[list[Hypothesis]]]:
    """Beam search that yields its beams after each step, and returns the best hypotheses."""
    require(width >= 1, f"beam = {width}: must be at least 1")
    require(1 <= nbest <= width, f"nbest = {nbest}: must be at least 1 and at most the beam's width, {width}")
    require(0 <= length_penalty <= 10, f"length_penalty = {length_penalty}: must not be negative, and at most 10")
    logits, state = prefill
    state.fork(width)
    steps = steps_of(model, Beams.begin(to_float32(logits), ending, width, length_penalty, nbest), state)
    steps.read(logits.repeat_interleave(width, 0))
    yield steps.search
    found: dict[int, list[Hypothesis]] = {}
    taken = 1
    while True:
        done = steps.search.done
        if taken % steps.check_every == 0:
            remaining = done.numel() - int(done.sum())
            if remaining == 0:
                found |= steps.search.results(done)
                return [found[sentence] for sentence in range(len(found))]
            if steps.state.shrinks and worth_shrinking(remaining, done.numel()):
                found |= steps.search.results(done)
                steps.state.select((~done).nonzero()[:, 0])
                steps.search = steps.search.select(~done)
        steps()
        yield steps.search
        taken += 1


@dataclass
class Beams:
    """W unfinished hypotheses of each sentence, and its W best complete ones; a score of -inf is an empty place."""

    ending: StopCriteria
    alpha: float  # the exponent of the length penalty
    nbest: int  # complete hypotheses that are wanted
    candidates: int  # C: enough for W continuations that do not end
    length: Tensor  # () tokens of the unfinished
    sentences: Tensor  # (B,) which of the batch these are
    limits: Tensor  # (B,) tokens that each may have
    log_probabilities: Tensor  # (B, W) of the unfinished, the most likely first
    parents: Tensor  # (B, W) the hypothesis that each of the unfinished continues
    ids: Tensor  # (B, W, T) of the unfinished
    scores: Tensor  # (B, W) of the complete, the best first
    complete: Tensor  # (B, W, T) ids of the complete, the end included
    lengths: Tensor  # (B, W) of the complete
    done: Tensor  # (B,) whether the best of a sentence are final

    @classmethod
    def begin(cls, logits: Tensor, ending: StopCriteria, width: int, alpha: float, nbest: int) -> Beams:
        """One empty hypothesis for each sentence: its continuations will fill the beam."""
        count = logits.size(0)
        sentences = torch.arange(count, device=logits.device)
        none = logits.new_full((count, width), -math.inf)
        log_probabilities = none.clone()
        log_probabilities[:, 0] = 0
        lengths = torch.zeros_like(none, dtype=torch.long)
        ids = sentences.new_zeros(count, width, rounded_up(ending.longest))
        return cls(
            ending=ending,
            alpha=alpha,
            nbest=nbest,
            candidates=min(width + len(ending.end), logits.size(-1)),
            length=sentences.new_zeros(()),
            sentences=sentences,
            limits=ending.limits(count, logits.device).clone(),
            log_probabilities=log_probabilities,
            parents=lengths.clone(),
            ids=ids,
            scores=none,
            complete=ids.clone(),
            lengths=lengths,
            done=torch.zeros_like(sentences, dtype=torch.bool),
        )

    @property
    def key(self) -> Hashable:
        """Everything but tensors that `read` depends on."""
        return self.ending.end, self.ending.pad, self.alpha, self.nbest, self.candidates

    @property
    def next_ids(self) -> Tensor:
        """(B * W,): the newest token of each hypothesis."""
        return self.ids.index_select(2, (self.length - 1).clamp(max=self.ids.size(2) - 1)[None]).flatten()

    def tensors(self) -> list[Tensor]:
        """All that changes, or may differ from search to search."""
        return [value for field in fields(self) if isinstance(value := getattr(self, field.name), Tensor)]

    def select(self, sentences: Tensor) -> Beams:
        """The beams of some sentences."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        kept: dict[str, Any] = {name: t[sentences] for name, t in values.items() if isinstance(t, Tensor) and t.dim()}
        return replace(self, **kept)

    def read(self, logits: Tensor) -> None:
        """Continue all hypotheses by their best candidates, given the logits (B * W, V) of the next token."""
        count, width = self.log_probabilities.shape
        values, tokens = logits.log_softmax(-1).topk(self.candidates)  # (B * W, C)
        totals = (self.log_probabilities.view(-1, 1) + values).view(count, -1)  # (B, W * C)
        tokens = tokens.view_as(totals)
        last = self.limits == self.length + 1
        ends = self.ending.reached(tokens)
        best, chosen = totals.topk(width)
        complete = ends.gather(1, chosen) | last[:, None]
        self.finish(best.masked_fill(~complete, -math.inf), self.extend(tokens, chosen))
        best, chosen = totals.masked_fill(ends | last[:, None], -math.inf).topk(width)
        self.ids.copy_(self.extend(tokens, chosen))
        self.parents.copy_(chosen // self.candidates)
        self.length += 1
        self.done.copy_(self.final(best[:, 0]))
        self.log_probabilities.copy_(best.masked_fill(self.done[:, None], -math.inf))  # these are not continued

    def extend(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """The ids of the chosen (B, W) of all continuations (B, W * C): (B, W, T)."""
        place = self.length.clamp(max=self.ids.size(2) - 1)
        return take(self.ids, chosen // self.candidates).index_copy_(
            2, place[None], tokens.gather(1, chosen)[..., None]
        )

    def finish(self, totals: Tensor, ids: Tensor) -> None:
        """Add these (B, W) to the complete hypotheses, and keep the W best."""
        length = self.length + 1
        new = totals / penalty(length.to(totals), self.alpha)
        scores, best = torch.cat([self.scores, new], 1).topk(totals.size(1))
        lengths = torch.cat([self.lengths, length.expand_as(self.lengths)], 1)
        self.scores.copy_(scores)
        self.lengths.copy_(lengths.gather(1, best))
        self.complete.copy_(take(torch.cat([self.complete, ids], 1), best))

    def final(self, likeliest: Tensor) -> Tensor:
        """(B,): whether the best are final, given the log-probability (B,) of the best unfinished; see `beam`."""
        reachable = likeliest / penalty(self.limits.to(self.scores), self.alpha)
        full = self.complete_totals().amin(1) >= likeliest  # -inf while a place is empty
        return (full & (self.scores[:, -1] > -math.inf)) | (reachable <= self.scores[:, self.nbest - 1])

    def complete_totals(self) -> Tensor:
        """(B, W): the log-probabilities of the complete hypotheses."""
        return self.scores * penalty(self.lengths.to(self.scores), self.alpha)

    def results(self, sentences: Tensor) -> dict[int, list[Hypothesis]]:
        """The best hypotheses of some sentences."""
        chosen = self.select(sentences)
        columns = (chosen.complete, chosen.lengths, chosen.scores, chosen.complete_totals())
        rows = zip(*(column[:, : self.nbest].tolist() for column in columns), strict=True)
        return {
            sentence: [self.hypothesis(*values) for values in zip(*row, strict=True) if values[2] > -math.inf]
            for sentence, row in zip(chosen.sentences.tolist(), rows, strict=True)
        }

    def hypothesis(self, ids: list[int], length: int, score: float, total: float) -> Hypothesis:
        """A complete hypothesis in plain numbers, without padding and without the end."""
        ended = ids[length - 1] in self.ending.end
        return Hypothesis(ids[: length - ended], score, total, ended)


def take(ids: Tensor, chosen: Tensor) -> Tensor:
    """The chosen (B, W) of each sentence's sequences (B, N, T): (B, W, T)."""
    return ids.gather(1, chosen[..., None].expand(*chosen.shape, ids.size(2)))


def penalty(length: Tensor, alpha: float) -> Tensor:
    """The paper's length penalty, ((5 + length) / 6)^alpha: a longer text may be less likely."""
    return ((5 + length) / 6) ** alpha
