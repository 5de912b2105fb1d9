"""Search: which tokens to write, greedily or by sampling; beam search is in beam.py.

Search calls `step` of a model and `fork`, `reorder` and `select` of a state; it knows neither encoder nor tokenizer.
Finished sentences are removed from the batch once they are a quarter of it; results keep the order of the inputs.

Shapes: B sentences (rows), T tokens written, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.decode.sampling import Sampler, SamplingSettings
from clearhead.decode.steps import Decoder, StopCriteria, run_steps, steps_of
from clearhead.model import State
from clearhead.renamed import old_names

Prefill = tuple[Tensor, State]  # what a model's `start` returned: the logits (B, V) of the first new token, the state
Choose = Callable[[Tensor, Tensor, Tensor], Tensor]  # logits (B, V), their rows (B,), tokens written () -> ids (B,)

__getattr__ = old_names(__name__, Writing="TokenSearch")


@dataclass(frozen=True)
class Hypothesis:
    """A text that a model may write."""

    ids: list[int]  # without the end token
    score: float  # what it is ranked by: log_probability / length penalty
    log_probability: float  # the sum over its tokens, the end token included
    ended: bool  # whether it has the end token; if not, it was cut at `max_tokens`


def greedy(model: Decoder, prefill: Prefill, ending: StopCriteria) -> list[Hypothesis]:
    """Write the most likely token at each step, in each row."""
    return run_steps(greedy_steps(model, prefill, ending))


def greedy_steps(model: Decoder, prefill: Prefill, ending: StopCriteria) -> Generator[None, None, list[Hypothesis]]:
    """Greedy search that yields after each step, and returns its hypotheses."""
    steps = []
    for step in write(model, prefill, ending, most_likely):
        steps.append(step)
        yield
    return collect(steps, ending)


def sample(
    model: Decoder,
    prefill: Prefill,
    ending: StopCriteria,
    choice: SamplingSettings,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> list[Hypothesis]:
    """Draw a token at each step, in each row; log-probabilities are the model's own, whatever the choice.

    The same seed gives the same text, and with a seed for each row, each gives what it would give alone; None draws
    another one each time. The repetition penalty counts what a row has written, and its prompt if prompts are given.
    """
    sampler = Sampler(choice, seed, prefill[0], ending.longest, prompts)
    return collect(write(model, prefill, ending, sampler), ending)


def stream(
    model: Decoder,
    prefill: Prefill,
    ending: StopCriteria,
    choice: SamplingSettings | None = None,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> Iterator[Tensor]:
    """Yield what `sample` writes, or `greedy` without a choice, token by token: ids (B,), `pad` after a row's end."""
    choose = most_likely if choice is None else Sampler(choice, seed, prefill[0], ending.longest, prompts)
    return (ids for ids, _ in write(model, prefill, ending, choose, check_every=1))


def most_likely(logits: Tensor, _rows: Tensor, _step: Tensor) -> Tensor:
    """Choose the next ids (B,) greedily."""
    return logits.argmax(-1)


@torch.inference_mode()
def write(
    model: Decoder, prefill: Prefill, ending: StopCriteria, choose: Choose, check_every: int = 100
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the ids (B,) of each step and their log-probabilities (B,), until every row has ended.

    Asking a GPU whether they have takes time. If it is asked less often than after each step (but at least every
    `check_every`), the last steps write only padding.
    """
    logits, state = prefill
    steps = steps_of(model, TokenSearch.begin(logits, ending, choose), state)
    steps.read(logits)
    search = steps.search
    check_every = min(check_every, steps.check_every)
    taken = 1
    while True:
        yield search.written.clone(), search.scores.clone()
        if taken % check_every == 0:
            remaining = int(search.active.sum())
            if remaining == 0:
                return
            if steps.state.shrinks and worth_shrinking(remaining, search.active.size(0)):
                kept = search.active.nonzero()[:, 0]
                steps.state.select(kept)
                search.select(kept)
        steps()
        taken += 1


def worth_shrinking(remaining: int, sentences: int) -> bool:
    """Whether to drop the sentences that are finished: copying the others is worth it if a quarter is finished."""
    return 4 * remaining <= 3 * sentences


@dataclass
class TokenSearch:
    """The rows that are being written, and the newest token of all."""

    ending: StopCriteria
    choose: Choose
    written: Tensor  # (N,) the newest token of each row of the batch, `pad` after its end
    scores: Tensor  # (N,) its log-probability, 0 after the end
    rows: Tensor  # (B,) which of the batch are still being written
    limits: Tensor  # (B,) tokens that each of these may have
    next_ids: Tensor  # (B,) their newest tokens
    active: Tensor  # (B,) whether they go on
    step: Tensor  # () tokens written

    parents = None  # a row continues itself

    @classmethod
    def begin(cls, logits: Tensor, ending: StopCriteria, choose: Choose) -> TokenSearch:
        """Return empty rows; only the shape and device of the logits (B, V) are used."""
        rows = torch.arange(logits.size(0), device=logits.device)
        limits = ending.limits(logits.size(0), logits.device).clone()
        scores = torch.zeros_like(rows, dtype=torch.promote_types(logits.dtype, torch.float32))
        active = torch.ones_like(rows, dtype=torch.bool)
        return cls(ending, choose, rows.clone(), scores, rows, limits, rows.clone(), active, step=rows.new_zeros(()))

    @property
    def key(self) -> Hashable:
        """Everything but tensors that `read` depends on."""
        choose = self.choose.choice if isinstance(self.choose, Sampler) else self.choose
        return choose, self.ending.end, self.ending.pad

    def tensors(self) -> list[Tensor]:
        """All that `read` reads or changes."""
        of_sampler = self.choose.tensors() if isinstance(self.choose, Sampler) else []
        own = [self.written, self.scores, self.rows, self.limits, self.next_ids, self.active, self.step]
        return [*own, *of_sampler]

    def read(self, logits: Tensor) -> None:
        """Choose the next token of each row by its logits (B, V)."""
        ids = self.choose(logits, self.rows, self.step).masked_fill(~self.active, self.ending.pad)
        scores = logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0] * self.active
        self.next_ids.copy_(ids)
        self.written.index_copy_(0, self.rows, ids)
        self.scores.index_copy_(0, self.rows, scores)
        self.step += 1
        self.active &= ~self.ending.reached(ids) & (self.step < self.limits)

    def select(self, kept: Tensor) -> None:
        """Go on with these rows (B,) only; the others have ended."""
        self.rows = self.rows[kept]
        self.limits = self.limits[kept]
        self.next_ids = self.next_ids[kept]
        self.active = self.active[kept]
        self.written.fill_(self.ending.pad)
        self.scores.zero_()


def collect(steps: Iterable[tuple[Tensor, Tensor]], ending: StopCriteria) -> list[Hypothesis]:
    """Turn steps into one hypothesis for each row, cut at its end."""
    ids, scores = (torch.stack(columns, dim=1).cpu() for columns in zip(*steps, strict=True))  # (B, T) each
    ends = ending.reached(ids).tolist()
    limits = ending.limits(ids.size(0), ids.device).tolist()
    hypotheses = []
    for row, total in enumerate(scores.sum(1).tolist()):
        ended = True in ends[row][: limits[row]]
        length = ends[row].index(True) if ended else limits[row]
        hypotheses.append(Hypothesis(ids[row, :length].tolist(), total, total, ended))
    return hypotheses
