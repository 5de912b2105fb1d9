"""The running batch: texts of different lengths that are generated together, one token of each in a decode step.

Shapes: B rows, V vocabulary, T tokens of the longest prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.decode.sampling import Sampler, SamplingSettings, draw
from clearhead.fast.choose import unrecorded_decoder_for
from clearhead.model import DecoderOnly, State
from clearhead.model.norm import to_float32
from clearhead.serve.states import SPARE, combine, replace


@dataclass(frozen=True)
class Token:
    """A generated token; log-probabilities are those of the model, before temperature and top-p."""

    id: int
    log_probability: float = 0.0  # only if it was asked for
    top: tuple[tuple[int, float], ...] = ()  # the most likely ids with their log-probabilities


@dataclass
class Row:
    """A text that is being generated."""

    prompt: list[int]
    tokens: int  # to generate at most
    choice: SamplingSettings | None = None  # None: greedily
    seed: int | None = None
    top: int | None = None  # how many of the most likely tokens to report; None: no log-probabilities at all
    written: int = 0
    newest: int = 0
    numbers: list[float] = field(default_factory=list)  # random ones, one for each token
    seen: Tensor | None = None  # (1, V) for the repetition penalty


class RunningBatch:
    """Rows that are generated together: each gets the tokens that it would get alone.

    When a row leaves, its place in the state stays unused until another row takes it, because copying all other rows
    takes longer than a step. They are copied when a quarter of the places is free, or when the state is far longer than
    its rows.
    """

    def __init__(self, model: DecoderOnly, pad: int) -> None:
        self.decoder = unrecorded_decoder_for(model)
        self.position_limit = model.decoder.position_limit
        self.pad = pad
        self.places: list[Row | None] = []  # None: its row has left
        self.state: State | None = None
        self.device = next(model.parameters()).device

    @property
    def rows(self) -> list[Row]:
        """The rows in the batch."""
        return [row for row in self.places if row is not None]

    def advance(self, joining: Sequence[Row]) -> list[tuple[Row, Token]]:
        """Generate one token of each row: the next one of running rows, the first one of joining rows."""
        found = self.step() if self.places else []
        if joining:
            found += self.prefill(joining)
        return found

    def step(self) -> list[tuple[Row, Token]]:
        """Take a decode step: one more token of each row."""
        if self.wasteful():
            self.compact()
        assert self.state is not None
        ids = torch.tensor([[self.pad if row is None else row.newest] for row in self.places], device=self.device)
        live = self.occupied()
        if len(live) == len(self.places):
            return choose(to_float32(self.decoder.step(ids, self.state)), self.rows)
        real = torch.tensor([[row is not None] for row in self.places], device=self.device)
        logits = self.decoder.step(ids, self.state, real)
        return choose(to_float32(logits[live]), self.rows)

    def prefill(self, joining: Sequence[Row]) -> list[tuple[Row, Token]]:
        """Read the prompts of new rows, padded on the left, and generate the first token of each."""
        width = max(len(row.prompt) for row in joining)
        ids = torch.full((len(joining), width), self.pad)
        real = torch.zeros(ids.shape, dtype=torch.bool)
        for index, row in enumerate(joining):
            ids[index, width - len(row.prompt) :] = torch.tensor(row.prompt)
            real[index, width - len(row.prompt) :] = True
        mask = None if bool(real.all()) else real.to(self.device)
        logits, state = self.decoder.start(ids.to(self.device), mask)
        for row, of_row in zip(joining, logits, strict=True):
            prepare(row, of_row[None])
        self.join(joining, state)
        return choose(to_float32(logits), joining)

    def join(self, joining: Sequence[Row], state: State) -> None:
        """Give places to new rows: free ones if there are enough, and the rows are not longer than the state."""
        free = [index for index, row in enumerate(self.places) if row is None][: len(joining)]
        if self.state is None:
            self.state = state
            self.places = list(joining)
        elif len(free) == len(joining) and state.length <= self.state.length:
            replace(self.state, torch.tensor(free, device=self.device), state)
            for index, row in zip(free, joining, strict=True):
                self.places[index] = row
        else:
            everyone = torch.arange(len(joining), device=self.device)
            self.state = combine([(self.state, torch.tensor(self.occupied(), device=self.device)), (state, everyone)])
            self.places = [*self.rows, *joining]

    def keep(self, kept: Sequence[Row]) -> None:
        """Remove all other rows."""
        wanted = {id(row) for row in kept}
        self.places = [row if id(row) in wanted else None for row in self.places]
        if not wanted:
            self.places = []
            self.state = None

    def occupied(self) -> list[int]:
        """The places that have a row."""
        return [index for index, row in enumerate(self.places) if row is not None]

    def wasteful(self) -> bool:
        """Whether copying the rows is worth it: many places are free, or the state is much longer than the longest row.

        If the model has learned positions, a state must not be longer than their number.
        """
        assert self.state is not None
        rows = self.rows
        longest = max(len(row.prompt) + row.written - 1 for row in rows)
        too_long = self.position_limit is not None and self.state.length >= self.position_limit
        return (
            too_long or 4 * len(rows) <= 3 * len(self.places) or self.state.length > longest + max(SPARE, longest // 4)
        )

    def compact(self) -> None:
        """Drop the places of rows that have left, and slots that no row needs."""
        assert self.state is not None
        self.state = combine([(self.state, torch.tensor(self.occupied(), device=self.device))])
        self.places = list(self.rows)


def prepare(row: Row, logits: Tensor) -> None:
    """Draw the random numbers of a row, the same as if it were alone."""
    if row.choice is None:
        return
    sampler = Sampler(row.choice, None if row.seed is None else [row.seed], logits, row.tokens, [row.prompt])
    row.numbers = sampler.numbers[0, : row.tokens].tolist()
    row.seen = sampler.seen


def choose(logits: Tensor, rows: Sequence[Row]) -> list[tuple[Row, Token]]:
    """Choose the next token of each row by its logits (B, V); rows with the same sampling settings together."""
    ids = logits.argmax(-1).tolist()
    groups: dict[SamplingSettings, list[int]] = {}
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


def sample(logits: Tensor, choice: SamplingSettings, rows: Sequence[Row]) -> list[int]:
    """Sample the next token of rows with the same settings, each with its own random number."""
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
