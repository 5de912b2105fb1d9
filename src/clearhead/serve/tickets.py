"""Requests in an engine, and the events that they receive."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clearhead.config import UserError
from clearhead.serve.rows import Row, Token

Reason = Literal["stop", "length", "time", "cancelled"]
Steps = Generator[object, None, Sequence[Any]]  # yields after each step of a computation, returns its results


@dataclass(frozen=True)
class End:
    """The last event of a request: why a text ended, the results of a call, or the error."""

    reason: Reason = "stop"
    result: Any = None
    error: Exception | None = None


Event = Token | End


class BusyError(Exception):
    """The queue is full; it may have space after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many requests are waiting; try again in {seconds} seconds")
        self.seconds = seconds


class StoppedError(Exception):
    """The server is stopping and accepts no more requests."""


@dataclass(eq=False)
class Ticket:
    """A request; `receive` is called with each of its events."""

    receive: Callable[[Event], None]
    cancelled: bool = field(default=False, init=False)
    started: float = field(default_factory=time.monotonic, init=False)

    def cancel(self) -> None:
        """Cancel the request; from any thread."""
        self.cancelled = True

    def expired(self, seconds: float) -> Reason | None:
        """Return why the request must end now, if it must: it was cancelled, or has taken more than `seconds`."""
        if self.cancelled:
            return "cancelled"
        return "time" if time.monotonic() - self.started > seconds else None


@dataclass(eq=False)
class TextTicket(Ticket):
    """A text to generate."""

    row: Row


@dataclass(frozen=True)
class Call:
    """A computation of the model on inputs of one or of several requests: one result for each input."""

    key: Hashable  # inputs of calls with equal keys are computed together
    begin: Callable[[list[Any]], Steps]
    rows: int = 1  # of the batch that one input takes: the beam width


def at_once(function: Callable[[list[Any]], Sequence[Any]]) -> Callable[[list[Any]], Steps]:
    """Return a computation of one step."""

    def begin(inputs: list[Any]) -> Steps:
        yield from ()
        return function(inputs)

    return begin


@dataclass(eq=False)
class CallTicket(Ticket):
    """Inputs of a call."""

    call: Call
    inputs: list[Any]
    taken: int = field(default=0, init=False)  # inputs that are being computed, or have been
    results: list[Any] = field(init=False)
    missing: int = field(init=False)  # results

    def __post_init__(self) -> None:
        self.missing = len(self.inputs)
        self.results = [None] * self.missing


def reported(error: Exception) -> Exception:
    """Return an error for the client; an unexpected one is also printed, with its traceback."""
    if not isinstance(error, UserError):
        traceback.print_exception(error)
    return error
