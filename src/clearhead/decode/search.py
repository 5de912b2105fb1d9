"""Search: which tokens to write, greedily, by sampling or by beam search.

Search calls `step` of a model and `fork`, `reorder` and `select` of a state; it knows neither encoder nor tokenizer.
Finished sentences are removed from the batch once they are a quarter of it; results keep the order of the inputs.

Shapes: B sentences (rows), W hypotheses of each, C candidates of each hypothesis, T tokens written, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import require
from clearhead.decode import fast
from clearhead.decode.defaults import BEAM, LENGTH_PENALTY
from clearhead.decode.sampling import Choice, Sampler
from clearhead.model import State
from clearhead.model.norm import to_float32

Prefill = tuple[Tensor, State]  # what a model's `start` returned: the logits (B, V) of the first new token, the state
Choose = Callable[[Tensor, Tensor, int], Tensor]  # logits (B, V), their rows (B,), tokens written -> ids (B,)


class Decoder(Protocol):
    """A model, as search sees it."""

    def step(self, ids: Tensor, state: State) -> Tensor:
        """Read one more token of each row (B, 1): return the logits (B, V) of the next."""


@dataclass(frozen=True)
class Ending:
    """When a row ends."""

    end: tuple[int, ...]  # ids that end a row
    pad: int  # what follows the end
    max_tokens: Tensor | int  # new tokens at most, the end included: for each row (B,), or for all

    def __post_init__(self) -> None:
        least = int(torch.as_tensor(self.max_tokens).min())
        require(least >= 1, f"max_tokens = {least}: must be at least 1")

    def limits(self, rows: int, device: torch.device) -> Tensor:
        """(B,): new tokens at most."""
        return torch.as_tensor(self.max_tokens, device=device).expand(rows)

    def reached(self, ids: Tensor) -> Tensor:
        """True where an id ends its row."""
        return torch.isin(ids, torch.tensor(self.end, device=ids.device, dtype=ids.dtype))


@dataclass(frozen=True)
class Hypothesis:
    """A text that a model may write."""

    ids: list[int]  # without the end token
    score: float  # what it is ranked by: log_probability / length penalty
    log_probability: float  # the sum over its tokens, the end token included
    ended: bool  # whether it has the end token; if not, it was cut at `max_tokens`


def greedy(model: Decoder, prefill: Prefill, ending: Ending) -> list[Hypothesis]:
    """Write the most likely token at each step, in each row."""
    return collect(write(model, prefill, ending, most_likely), ending)


def sample(
    model: Decoder,
    prefill: Prefill,
    ending: Ending,
    choice: Choice,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> list[Hypothesis]:
    """Draw a token at each step, in each row; log-probabilities are the model's own, whatever the choice.

    The same seed gives the same text, and with a seed for each row, each gives what it would give alone; None draws
    another one each time. The repetition penalty counts what a row has written, and its prompt if prompts are given.
    """
    sampler = Sampler(choice, seed, prefill[0].shape, prompts)
    return collect(write(model, prefill, ending, sampler), ending)


def stream(
    model: Decoder,
    prefill: Prefill,
    ending: Ending,
    choice: Choice | None = None,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> Iterator[Tensor]:
    """Yield what `sample` writes, or `greedy` without a choice, token by token: ids (B,), `pad` after a row's end."""
    choose = most_likely if choice is None else Sampler(choice, seed, prefill[0].shape, prompts)
    return (ids for ids, _ in write(model, prefill, ending, choose))


def most_likely(logits: Tensor, _rows: Tensor, _step: int) -> Tensor:
    """Choose the next ids (B,) greedily."""
    return logits.argmax(-1)


@torch.inference_mode()
def write(model: Decoder, prefill: Prefill, ending: Ending, choose: Choose) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the ids (B,) of each step and their log-probabilities (B,), until every row has ended."""
    logits, state = prefill
    logits = to_float32(logits)
    count = logits.size(0)
    limits = ending.limits(count, logits.device)
    rows = torch.arange(count, device=logits.device)  # row i of the state is rows[i] of the batch
    active = torch.ones_like(rows, dtype=torch.bool)
    step = 0
    while True:
        ids = choose(logits, rows, step).masked_fill(~active, ending.pad)
        scores = logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0] * active
        yield (
            ids.new_full((count,), ending.pad).index_copy(0, rows, ids),
            scores.new_zeros(count).index_copy(0, rows, scores),
        )
        step += 1
        active = active & ~ending.reached(ids) & (step < limits[rows])
        if not active.any():
            return
        if worth_shrinking(active, state):
            kept = active.nonzero()[:, 0]
            state.select(kept)
            ids, rows, active = (t[kept] for t in (ids, rows, active))
        logits = to_float32(model.step(ids[:, None], state))


def worth_shrinking(active: Tensor, state: State) -> bool:
    """Whether to drop the sentences (B,) that are finished: copying the others is worth it if a quarter is finished."""
    return state.shrinks and 4 * int(active.sum()) <= 3 * active.size(0)


def collect(steps: Iterator[tuple[Tensor, Tensor]], ending: Ending) -> list[Hypothesis]:
    """Turn steps into one hypothesis for each row, cut at its end."""
    ids, scores = (torch.stack(columns, dim=1) for columns in zip(*steps, strict=True))  # (B, T) each
    ends = ending.reached(ids).tolist()
    limits = ending.limits(ids.size(0), ids.device).tolist()
    hypotheses = []
    for row, total in enumerate(scores.sum(1).tolist()):
        ended = True in ends[row][: limits[row]]
        length = ends[row].index(True) if ended else limits[row]
        hypotheses.append(Hypothesis(ids[row, :length].tolist(), total, total, ended))
    return hypotheses


@torch.inference_mode()
def beam(
    model: Decoder,
    prefill: Prefill,
    ending: Ending,
    width: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    nbest: int = 1,
    on_step: Callable[[Beams], None] = lambda _: None,
) -> list[list[Hypothesis]]:
    """The paper's beam search: the `nbest` best hypotheses of each sentence, by log-probability / length penalty.

    At each step, of the `width` most likely continuations of a sentence's hypotheses, those that end are complete; and
    the `width` most likely that do not end are continued. A sentence is done when `width` hypotheses are complete and
    each is more likely than all open ones, so that short, unlikely texts cannot end the search.

    A sentence is also done as soon as its result is final: with each token the log-probability falls and the penalty
    grows, so the score of a continuation is at most log-probability now / penalty at the length limit. If this bound is
    not above the score of the `nbest`-th complete hypothesis even for the best open one, no result can change.
    """
    require(width >= 1, f"beam = {width}: must be at least 1")
    require(1 <= nbest <= width, f"nbest = {nbest}: must be at least 1 and at most the beam's width, {width}")
    require(0 <= length_penalty <= 10, f"length_penalty = {length_penalty}: must not be negative, and at most 10")
    logits, state = prefill
    beams = Beams.begin(to_float32(logits), ending, width, length_penalty)
    top_tokens = fast.TopTokens()
    candidates = min(width + len(ending.end), logits.size(-1))  # enough for `width` continuations that do not end
    found: dict[int, list[Hypothesis]] = {}
    state.fork(width)
    values, tokens = top_tokens(to_float32(logits.repeat_interleave(width, 0)), candidates)
    while True:
        parents = beams.grow(values, tokens)  # (B, W)
        on_step(beams)
        done = beams.done(nbest)
        if done.all() or worth_shrinking(~done, state):
            found |= beams.results(done, nbest)
            beams = beams.select(~done)
            parents = parents[~done]
            if done.all():
                return [found[sentence] for sentence in range(len(found))]
            state.select((~done).nonzero()[:, 0])
        fast.reorder(state, parents)
        values, tokens = top_tokens(to_float32(model.step(beams.ids[:, :, -1:].flatten(0, 1), state)), candidates)


@dataclass
class Beams:
    """W unfinished hypotheses of each sentence, and its W best complete ones; a score of -inf is an empty place."""

    ending: Ending
    alpha: float  # the exponent of the length penalty
    sentences: Tensor  # (B,) which of the batch these are
    limits: Tensor  # (B,) tokens that each may have
    log_probabilities: Tensor  # (B, W) of the unfinished, the most likely first
    ids: Tensor  # (B, W, T) of the unfinished
    scores: Tensor  # (B, W) of the complete, the best first
    complete: Tensor  # (B, W, T) ids of the complete, the end included
    lengths: Tensor  # (B, W) of the complete

    @classmethod
    def begin(cls, logits: Tensor, ending: Ending, width: int, alpha: float) -> Beams:
        """One empty hypothesis for each sentence: its continuations will fill the beam."""
        sentences = torch.arange(logits.size(0), device=logits.device)
        limits = ending.limits(logits.size(0), logits.device)
        none = logits.new_full((logits.size(0), width), -math.inf)
        log_probabilities = none.clone()
        log_probabilities[:, 0] = 0
        ids = sentences.new_zeros(logits.size(0), width, 0)
        lengths = torch.zeros_like(none, dtype=torch.long)
        return cls(ending, alpha, sentences, limits, log_probabilities, ids, none, ids, lengths)

    def select(self, sentences: Tensor) -> Beams:
        """The beams of some sentences."""
        tensors = [field.name for field in fields(self) if field.name not in ("ending", "alpha")]
        return replace(self, **{name: getattr(self, name)[sentences] for name in tensors})

    def grow(self, values: Tensor, tokens: Tensor) -> Tensor:
        """Continue all hypotheses by their candidates: log-probabilities and tokens (B * W, C) of each.

        Returns (B, W), the hypothesis that each of the new ones continues.
        """
        count, width = self.log_probabilities.shape
        totals = (self.log_probabilities.view(-1, 1) + values).view(count, -1)  # (B * W, C) -> (B, W * C)
        tokens = tokens.view_as(totals)
        last = self.limits == self.ids.size(2) + 1
        ends = self.ending.reached(tokens)
        best, chosen = totals.topk(width)
        complete = ends.gather(1, chosen) | last[:, None]
        self.finish(best.masked_fill(~complete, -math.inf), self.extend(tokens, chosen))
        self.log_probabilities, chosen = totals.masked_fill(ends | last[:, None], -math.inf).topk(width)
        self.ids = self.extend(tokens, chosen)
        return chosen // values.size(1)

    def extend(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """The ids of the chosen (B, W) of all continuations (B, W * C): (B, W, T + 1)."""
        parents = chosen // (tokens.size(1) // chosen.size(1))
        return torch.cat([take(self.ids, parents), tokens.gather(1, chosen)[..., None]], dim=2)

    def finish(self, totals: Tensor, ids: Tensor) -> None:
        """Add these (B, W) to the complete hypotheses, and keep the W best."""
        new = totals / penalty(ids.size(2), self.alpha)
        lengths = torch.cat([self.lengths, torch.full_like(self.lengths, ids.size(2))], 1)
        complete = torch.cat([F.pad(self.complete, (0, 1)), ids], 1)
        self.scores, best = torch.cat([self.scores, new], 1).topk(totals.size(1))
        self.lengths = lengths.gather(1, best)
        self.complete = take(complete, best)

    def done(self, nbest: int) -> Tensor:
        """(B,): whether the best of a sentence are final; see `beam`."""
        reachable = self.log_probabilities[:, 0] / penalty(self.limits.to(self.scores), self.alpha)
        full = self.complete_totals().amin(1) >= self.log_probabilities[:, 0]  # -inf while a place is empty
        done = (full & (self.scores[:, -1] > -math.inf)) | (reachable <= self.scores[:, nbest - 1])
        # the hypotheses of sentences that are done are not continued
        self.log_probabilities = self.log_probabilities.masked_fill(done[:, None], -math.inf)
        return done

    def complete_totals(self) -> Tensor:
        """(B, W): the log-probabilities of the complete hypotheses."""
        return self.scores * penalty(self.lengths.to(self.scores), self.alpha)

    def results(self, sentences: Tensor, nbest: int) -> dict[int, list[Hypothesis]]:
        """The best hypotheses of some sentences."""
        chosen = self.select(sentences)
        columns = (chosen.complete, chosen.lengths, chosen.scores, chosen.complete_totals())
        rows = zip(*(column[:, :nbest].tolist() for column in columns), strict=True)
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


def penalty(length: Tensor | int, alpha: float) -> Tensor | float:
    """The paper's length penalty, ((5 + length) / 6)^alpha: a longer text may be less likely."""
    return ((5 + length) / 6) ** alpha
