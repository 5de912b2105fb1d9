"""Search as its definition says, without cache and padding: what the fast ways of decoding are compared with."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.decode.search import Hypothesis
from clearhead.model import DecoderOnly, EncoderDecoder, State
from fixed_states import fixed_state

VOCAB, END, PAD = 6, 5, 0
PROMPTS = ([1, 2, 3, 4], [2, 2], [3], [4, 1, 2], [0])
SOURCES = ([4, 3, 2], [1, 2, 3, 4, 2, 1], [2], [3, 3, 1, 1], [1, 4])


@dataclass(frozen=True)
class Rows:
    """A model and what its rows begin with: all in one batch, or one of them alone."""

    model: EncoderDecoder | DecoderOnly
    prompts: tuple[list[int], ...] = PROMPTS
    sources: tuple[list[int], ...] = SOURCES
    known: dict[str, Tensor] = field(default_factory=dict)  # the logits of what was asked before

    def start(self, capacity: int | None = None) -> tuple[Tensor, State]:
        prompt, real = padded(self.prompts, left=True)
        state = None if capacity is None else fixed_state(self.model, prompt, capacity)
        if isinstance(self.model, DecoderOnly):
            return self.model.start(prompt, real, state)
        source, source_real = padded(self.sources, left=False)
        return self.model.start(source, prompt, source_real, real, state)

    def alone(self, row: int) -> Rows:
        return replace(self, prompts=self.prompts[row : row + 1], sources=self.sources[row : row + 1])

    def __iter__(self) -> Any:
        return (self.alone(row) for row in range(len(self.prompts)))

    @torch.inference_mode()
    def logits(self, written: list[int]) -> Tensor:
        """What follows in the only row: no cache of the model's, no padding."""
        [prompt], [source] = self.prompts, self.sources
        if (key := f"{source} {prompt} {written}") not in self.known:
            ids = torch.tensor([prompt + written])
            inputs = (ids,) if isinstance(self.model, DecoderOnly) else (torch.tensor([source]), ids)
            self.known[key] = self.model(*inputs)[0, -1]
        return self.known[key]

    def log_probability(self, ids: list[int], token: int) -> float:
        return self.logits(ids).log_softmax(-1)[token].item()


def padded(rows: tuple[list[int], ...], left: bool) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows))
    ids, real = torch.full((len(rows), width), PAD), torch.zeros(len(rows), width, dtype=torch.bool)
    for row, numbers in enumerate(rows):
        here = slice(width - len(numbers), width) if left else slice(0, len(numbers))
        ids[row, here], real[row, here] = torch.tensor(numbers), True
    return ids, real


def written_slowly(row: Rows, longest: int, choose: Any, end: tuple[int, ...] = (END,)) -> Hypothesis:
    """One row alone, a whole forward pass for each token."""
    ids: list[int] = []
    total = 0.0
    for step in range(longest):
        token = int(choose(row.logits(ids)[None], torch.tensor([0]), torch.tensor(step)))
        total += row.log_probability(ids, token)
        if token in end:
            return Hypothesis(ids, total, total, True)
        ids = [*ids, token]
    return Hypothesis(ids, total, total, False)


def penalty(length: int, power: float) -> float:
    return ((5 + length) / 6) ** power


def beam_slowly(row: Rows, longest: int, width: int, power: float, end: tuple[int, ...] = (END,)) -> list[Hypothesis]:
    """One row alone, lists instead of tensors, and no stop before `width` likelier than all others are complete."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    complete: list[Hypothesis] = []
    for length in range(1, longest + 1):
        grown = [
            (total + row.log_probability(ids, token), [*ids, token]) for total, ids in live for token in range(VOCAB)
        ]
        grown.sort(key=lambda pair: -pair[0])
        for total, ids in grown[:width]:
            ended = ids[-1] in end
            if ended or length == longest:
                text = ids[:-1] if ended else ids
                complete.append(Hypothesis(text, total / penalty(length, power), total, ended))
        live = [(total, ids) for total, ids in grown if ids[-1] not in end][:width]
        kept = sorted(complete, key=lambda h: -h.score)[:width]
        if len(kept) == width and min(h.log_probability for h in kept) >= live[0][0]:
            break
    return sorted(complete, key=lambda h: -h.score)[:width]


def enumerated(row: Rows, longest: int, power: float) -> list[Hypothesis]:
    """Every text there is, the best first."""
    found = []
    for length in range(1, longest + 1):
        for ids in itertools.product(range(VOCAB), repeat=length):
            ended = ids[-1] == END
            if END in ids[:-1] or not (ended or length == longest):
                continue
            total = sum(row.log_probability(list(ids[:t]), token) for t, token in enumerate(ids))
            found.append(Hypothesis(list(ids[: length - ended]), total / penalty(length, power), total, ended))
    return sorted(found, key=lambda h: -h.score)
