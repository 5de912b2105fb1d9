"""The decode steps of a search: each feeds the newest tokens to the model, and the search reads the logits.

`steps_of` is where a faster decoder (fast/) can take the steps itself. For that, a search keeps all that changes from
step to step in tensors of fixed shape, which a CUDA graph can update in place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.model import State
from clearhead.model.norm import to_float32
from clearhead.renamed import old_names

__getattr__ = old_names(__name__, Ending="StopCriteria")


@dataclass(frozen=True)
class StopCriteria:
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
        if not self.end:
            return torch.zeros_like(ids, dtype=torch.bool)
        return reduce(torch.logical_or, [ids == number for number in self.end])

    @property
    def longest(self) -> int:
        """New tokens at most, in any row."""
        return int(torch.as_tensor(self.max_tokens).max())


class Search(Protocol):
    """A search in progress over B rows."""

    ending: StopCriteria

    @property
    def key(self) -> Hashable:
        """Everything but tensors that `read` depends on."""

    @property
    def next_ids(self) -> Tensor:
        """(B,): the newest token of each row."""

    @property
    def parents(self) -> Tensor | None:
        """(B, W): in a beam, the hypothesis that each one continues."""

    def tensors(self) -> list[Tensor]:
        """Every tensor that `read` reads or changes."""

    def read(self, logits: Tensor) -> None:
        """Choose the next tokens by their logits (B, V), in float32; updates the tensors in place."""


S = TypeVar("S", bound=Search)
Step = TypeVar("Step")
Found = TypeVar("Found")


class Decoder(Protocol):
    """A model, as search sees it."""

    def step(self, ids: Tensor, state: State) -> Tensor:
        """Read one more token of each row (B, 1): return the logits (B, V) of the next."""


class Steps(Protocol[S]):
    """Takes the decode steps of a search."""

    check_every: int  # steps between two questions whether the search has ended
    search: S  # where the results of the steps are

    @property
    def state(self) -> State:
        """The decoding state that the steps advance."""

    def read(self, logits: Tensor) -> None:
        """Let the search choose the next tokens by the logits (B, V) of the prefill."""

    def __call__(self) -> None:
        """Take a step."""


@runtime_checkable
class SteppingDecoder(Protocol):
    """A decoder with its own loop of decode steps."""

    def steps(self, search: S, state: State) -> Steps[S]:
        """Return the steps of a search after the prefill."""


@dataclass
class PlainSteps(Generic[S]):
    """Steps that call the model."""

    model: Decoder
    search: S
    state: State
    check_every: int = 1

    def read(self, logits: Tensor) -> None:
        """Let the search choose the next tokens by their logits (B, V)."""
        self.search.read(to_float32(logits))

    def __call__(self) -> None:
        """Take a step."""
        if self.search.parents is not None:
            self.state.reorder(self.search.parents)
        self.read(self.model.step(self.search.next_ids[:, None], self.state))


def run_steps(steps: Generator[Step, None, Found], on_step: Callable[[Step], None] = lambda _: None) -> Found:
    """Take all steps of a computation that is a generator; return its result."""
    while True:
        try:
            on_step(next(steps))
        except StopIteration as ended:
            found: Found = ended.value
            return found


def steps_of(model: Decoder, search: S, state: State) -> Steps[S]:
    """Return the steps of a search after the prefill: those of the model, if it takes them itself."""
    return model.steps(search, state) if isinstance(model, SteppingDecoder) else PlainSteps(model, search, state)
