"""Sampling: draw the next token at random from the model's distribution.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.device import require_memory
from clearhead.renamed import old_names

LOWEST_TEMPERATURE = 1e-37  # what is smaller is 0 in float32
ROUNDED_TO = 64  # tokens: buffers of a search hold a multiple of this, so that few sizes occur

__getattr__ = old_names(__name__, Choice="SamplingSettings")


@dataclass(frozen=True)
class SamplingSettings:
    """How to sample the next token; the defaults sample from the model's distribution as it is.

    Each rule applies to what the one before it left; tokens that are equally likely are kept or dropped together.
    """

    temperature: float = 1.0  # divides the logits: below 1 sharpens the distribution, above 1 flattens it
    top_k: int = 0  # keep the k most likely tokens; 0: all
    top_p: float = 1.0  # keep the fewest most likely tokens that together have this probability
    min_p: float = 0.0  # keep tokens at least this fraction as likely as the most likely one
    repetition_penalty: float = 1.0  # above 1: tokens that occurred before become less likely

    def __post_init__(self) -> None:
        require(
            LOWEST_TEMPERATURE <= self.temperature < math.inf,
            f"temperature = {self.temperature}: must be above 0; to always take the most likely token, decode greedily",
        )
        require(
            self.top_k >= 0 and self.top_k == int(self.top_k),
            f"top_k = {self.top_k}: must be 1 or more, or 0 to keep all tokens",
        )
        require(0 < self.top_p <= 1, f"top_p = {self.top_p}: must be above 0 and at most 1, which keeps all tokens")
        require(0 <= self.min_p <= 1, f"min_p = {self.min_p}: must be between 0, which keeps all tokens, and 1")
        require(
            0 < self.repetition_penalty <= 1e30,
            f"repetition_penalty = {self.repetition_penalty}: must be above 0, at most 1e30; 1 changes nothing",
        )

    def probabilities(self, logits: Tensor, seen: Tensor | None = None) -> Tensor:
        """The distribution to sample from, (B, V) -> (B, V); seen (B, V): True for tokens that occurred before."""
        if seen is not None:
            penalised = torch.where(logits > 0, logits / self.repetition_penalty, logits * self.repetition_penalty)
            logits = torch.where(seen, penalised, logits)
        logits = (logits - logits.amax(-1, keepdim=True)) / self.temperature  # the largest is 0: nothing overflows
        if 0 < self.top_k < logits.size(-1):
            logits = keep_from(logits, logits.topk(self.top_k).values[:, -1:])
        if self.top_p < 1:
            logits = keep_from(logits, nucleus(logits, self.top_p))
        if self.min_p > 0:
            logits = keep_from(logits, torch.full_like(logits[:, :1], math.log(self.min_p)))
        return logits.softmax(-1)


def keep_from(logits: Tensor, least: Tensor) -> Tensor:
    """Drop the tokens whose logit is below `least` (B, 1)."""
    return logits.masked_fill(logits < least, -math.inf)


def nucleus(logits: Tensor, mass: float) -> Tensor:
    """(B, V) -> (B, 1): the smallest logit for which all larger ones together have less probability than `mass`."""
    ordered = logits.sort(-1, descending=True).values
    before = ordered.softmax(-1).cumsum(-1).roll(1, dims=-1)  # the probability of all larger ones
    before[:, 0] = 0
    return ordered.masked_fill(before >= mass, math.inf).amin(-1, keepdim=True)


class Sampler:
    """Samples a token for each row, which has its own random numbers: a row does not depend on the others."""

    def __init__(
        self,
        choice: SamplingSettings,
        seed: int | Sequence[int] | None,
        logits: Tensor,  # (B, V), for their shape and device
        tokens: int,  # at most in a row
        prompts: Sequence[Sequence[int]] = (),
    ) -> None:
        rows, vocabulary = logits.shape
        require_memory(8 * rows * tokens, "cpu", f"sampling up to {tokens:,} tokens", "ask for fewer")
        self.choice = choice
        generators = [torch.Generator().manual_seed(number) for number in row_seeds(seed, rows)]
        numbers = [torch.rand(rounded_up(tokens), generator=generator) for generator in generators]
        self.numbers = torch.stack(numbers).to(logits.device)  # (B, T)
        self.seen: Tensor | None = None  # (B, V) which tokens a row has had
        self.true = torch.ones((), dtype=torch.bool, device=logits.device)
        if choice.repetition_penalty != 1:
            seen = torch.zeros(rows, vocabulary, dtype=torch.bool)
            for row, prompt in enumerate(prompts):
                seen[row, torch.tensor(prompt, dtype=torch.long)] = True
            self.seen = seen.to(logits.device)

    def tensors(self) -> list[Tensor]:
        """All that a call reads or changes."""
        return [self.numbers, self.true] if self.seen is None else [self.numbers, self.true, self.seen]

    def __call__(self, logits: Tensor, rows: Tensor, step: Tensor) -> Tensor:
        """Sample the next ids (B,) of these rows (B,), after `step` tokens."""
        seen = None if self.seen is None else self.seen[rows]
        column = step.clamp(max=self.numbers.size(1) - 1)[None]
        numbers = self.numbers.index_select(1, column)[rows, 0]
        ids = draw(self.choice.probabilities(logits, seen), numbers)
        if self.seen is not None:
            self.seen.index_put_((rows, ids), self.true)
        return ids


def rounded_up(tokens: int) -> int:
    """The next multiple of ROUNDED_TO."""
    return -(-tokens // ROUNDED_TO) * ROUNDED_TO


def row_seeds(seed: int | Sequence[int] | None, rows: int) -> list[int]:
    """One seed for each row: those given, or random ones, drawn from the one given."""
    if isinstance(seed, Sequence):
        require(len(seed) == rows, f"seed: {len(seed)} were given for {rows} rows; give one, or one for each")
        for number in seed:
            check_seed(number)
        return list(seed)
    source = torch.Generator()
    if seed is None:
        source.seed()
    else:
        check_seed(seed)
        source.manual_seed(seed)
    return [int(torch.randint(2**62, (), generator=source)) for _ in range(rows)]


def check_seed(seed: int) -> None:
    """Refuse a seed that torch cannot take."""
    require(-(2**63) <= seed < 2**64, f"seed = {seed}: must be between -2^63 and 2^64 - 1")


def draw(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """Inverse transform sampling: the token at which the cumulative sum of (B, V) passes a number in [0, 1): (B,)."""
    sums = probabilities.cumsum(-1)
    sought = numbers.to(sums) * sums[:, -1]  # a number is at most 1 - 2^-24: rounding cannot lead past the last token
    return torch.searchsorted(sums, sought[:, None], right=True).squeeze(-1)
