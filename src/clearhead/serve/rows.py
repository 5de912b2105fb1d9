"""The running batch: texts of different ages that are written together, one token of each at a step.

Shapes: B rows, V vocabulary, T tokens of the longest prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.decode.sampling import Choice, Sampler, draw
from clearhead.model import DecoderOnly, State
from clearhead.model.norm import to_float32
from clearhead.serve.states import combine


@dataclass(frozen=True)
class Token:
    """A token that was written; log-probabilities are the model's own, whatever the choice."""

    id: int
    log_probability: float = 0.0  # only if it was asked for
    top: tuple[tuple[int, float], ...] = ()  # the most likely ids with their log-probabilities


@dataclass
class Row:
    """A text that is being written."""

    prompt: list[int]
    tokens: int  # to write at most
    choice: Choice | None = None  # None: greedily
    seed: int | None = None
    top: int | None = None  # how many of the most likely tokens to report; None: no log-probabilities at all
    written: int = 0
    newest: int = 0
    numbers: list[float] = field(default_factory=list)  # random ones, one for each token
    seen: Tensor | None = None  # (1, V) for the repetition penalty


class RunningBatch:
    """Rows that are written together: each gets the tokens that it would get alone."""

    def __init__(self, model: DecoderOnly, pad: int) -> None:
        self.model = model
        self.pad = pad
        self.rows: list[Row] = []
        self.state: State | None = None
        self.device = next(model.parameters()).device

    def advance(self, joining: Sequence[Row]) -> list[tuple[Row, Token]]:
        """Write one token in each row, the first one in those that join."""
        found = self.step() if self.rows else []
        if joining:
            found += self.prefill(joining)
        return found

    def step(self) -> list[tuple[Row, Token]]:
        """Write one more token in each row."""
        assert self.state is not None
        ids = torch.tensor([[row.newest] for row in self.rows], device=self.device)
        return choose(to_float32(self.model.step(ids, self.state)), self.rows)

    def prefill(self, joining: Sequence[Row]) -> list[tuple[Row, Token]]:
        """Read the prompts of new rows, padded on the left, and write the first token of each."""
        width = max(len(row.prompt) for row in joining)
        ids = torch.full((len(joining), width), self.pad)
        real = torch.zeros(ids.shape, dtype=torch.bool)
        for index, row in enumerate(joining):
            ids[index, width - len(row.prompt) :] = torch.tensor(row.prompt)
            real[index, width - len(row.prompt) :] = True
        mask = None if bool(real.all()) else real.to(self.device)
        logits, state = self.model.start(ids.to(self.device), mask)
        for row, of_row in zip(joining, logits, strict=True):
            prepare(row, of_row[None])
        parts = [(state, torch.arange(len(joining), device=self.device))]
        if self.state is not None and self.rows:
            parts.insert(0, (self.state, torch.arange(len(self.rows), device=self.device)))
        self.state = state if len(parts) == 1 else combine(parts)
        self.rows = [*self.rows, *joining]
        return choose(to_float32(logits), joining)

    def keep(self, kept: Sequence[Row]) -> None:
        """Drop all other rows."""
        if len(kept) == len(self.rows):
            return
        wanted = {id(row) for row in kept}
        indices = [index for index, row in enumerate(self.rows) if id(row) in wanted]
        if self.state is not None and indices:
            self.state = combine([(self.state, torch.tensor(indices, device=self.device))])
        elif not indices:
            self.state = None
        self.rows = [self.rows[index] for index in indices]


def prepare(row: Row, logits: Tensor) -> None:
    """Draw the random numbers of a row: those that it would have alone."""
    if row.choice is None:
        return
    sampler = Sampler(row.choice, None if row.seed is None else [row.seed], logits, row.tokens, [row.prompt])
    row.numbers = sampler.numbers[0, : row.tokens].tolist()
    row.seen = sampler.seen


def choose(logits: Tensor, rows: Sequence[Row]) -> list[tuple[Row, Token]]:
    """Choose the next token of each row by its logits (B, V); rows that sample in the same way together."""
    ids = logits.argmax(-1).tolist()
    groups: dict[Choice, list[int]] = {}
    for index, row in enumerate(rows):
        if row.choice is not None:
            groups.setdefault(row.choice, []).append(index)
    for choice, members in groups.items():
        for index, number in zip(members, sample(logits[members], choice, [rows[m] for m in members]), strict=True):
            ids[index] = number
    tokens = describe(logits, ids, rows)
    for row, token in zip(rows, tokens, strict=True):
        row.newest = token.id
        row.written += 1
    return list(zip(rows, tokens, strict=True))


def sample(logits: Tensor, choice: Choice, rows: Sequence[Row]) -> list[int]:
    """Draw the next token of rows with the same choice, each with its own random number."""
    seen = None
    if choice.repetition_penalty != 1:
        seen = torch.cat([row.seen for row in rows if row.seen is not None])
    numbers = torch.tensor([row.numbers[row.written] for row in rows], device=logits.device)
    drawn = draw(choice.probabilities(logits, seen), numbers)
    ids: list[int] = drawn.clamp(max=logits.size(-1) - 1).tolist()  # a row of NaN must not end the others by an error
    for row, number in zip(rows, ids, strict=True):
        if row.seen is not None:
            row.seen[0, number] = True
    return ids


def describe(logits: Tensor, ids: Sequence[int], rows: Sequence[Row]) -> list[Token]:
    """Return the tokens, with log-probabilities for the rows that want them."""
    wanted = [index for index, row in enumerate(rows) if row.top is not None]
    tokens = [Token(number) for number in ids]
    if not wanted:
        return tokens
    log_probabilities = logits[wanted].log_softmax(-1)
    count = min(max(rows[index].top or 0 for index in wanted), logits.size(-1))
    values, indices = (found.tolist() for found in log_probabilities.topk(count))
    for place, index in enumerate(wanted):
        pairs = list(zip(indices[place], values[place], strict=True))[: rows[index].top]
        tokens[index] = Token(ids[index], float(log_probabilities[place, ids[index]]), tuple(pairs))
    return tokens
