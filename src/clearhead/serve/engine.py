"""Continuous batching: one thread owns a model, and requests join and leave its batch at each decode step.

Two kinds of requests wait in one bounded queue. A `TextTicket` is written token by token: it joins the running batch as
soon as there is a place, and leaves it at its end. A `CallTicket` is computed at once: those that wait with equal keys
share a call, between two decode steps.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from clearhead.config import UserError
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.serve.limits import Limits
from clearhead.serve.rows import Row, RunningBatch, Token

PREFILL_TOKENS = 2048  # of prompts that join in one step, padding included: more would hold up the running rows
PREFILL_PROMPTS = 32

Reason = Literal["stop", "length", "time", "cancelled"]


@dataclass(frozen=True)
class End:
    """The last event of a request: why a text ended, or the result of a call, or what went wrong."""

    reason: Reason = "stop"
    result: Any = None
    error: Exception | None = None


Event = Token | End


class BusyError(Exception):
    """The queue is full; it may have space after so many seconds."""

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
        """Give up its place; from any thread."""
        self.cancelled = True


@dataclass(eq=False)
class TextTicket(Ticket):
    """A text to write."""

    row: Row


@dataclass(eq=False)
class CallTicket(Ticket):
    """Inputs of a function that takes those of several requests with equal keys: one result for each input."""

    key: Hashable
    call: Callable[[list[Any]], Sequence[Any]]
    inputs: list[Any]


def call_directly(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in the engine's own thread."""
    function(*arguments)


class Engine:
    """The thread that owns the model of a run."""

    def __init__(self, run: Run, limits: Limits, deliver: Callable[..., object] = call_directly) -> None:
        """Start nothing; `deliver(function, events)` calls a function where events are received, once for each step."""
        self.run = run
        self.limits = limits
        self.deliver = deliver
        self.waiting: deque[Ticket] = deque()
        self.running: dict[int, TextTicket] = {}  # by the identity of its row
        self.calling = 0  # requests that share the current call
        self.tokens_read = 0
        self.tokens_written = 0
        self.seconds = 1.0  # that a request takes, as a moving average
        self.stopping = False
        self.wake = threading.Condition()
        tokenizer = run.tokenizers.target
        self.end = tokenizer.end
        self.batch = RunningBatch(run.model, tokenizer.pad) if isinstance(run.model, DecoderOnly) else None
        self.thread = threading.Thread(target=self.loop, name=f"engine {run.folder.name}", daemon=True)

    @property
    def active(self) -> int:
        """Requests that are being computed."""
        return len(self.running) + self.calling

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Put a request into the queue, from any thread; raises BusyError if it is full."""
        with self.wake:
            if self.stopping:
                raise StoppedError("the server is stopping; send the request to another one, or again later")
            if len(self.waiting) >= self.limits.queue:
                raise BusyError(max(1, round(self.seconds * (1 + len(self.waiting) / self.limits.batch))))
            self.waiting.append(ticket)
            self.wake.notify()

    def stop(self, timeout: float | None = None) -> None:
        """Accept no more requests; return when all accepted ones are done, or after so many seconds."""
        with self.wake:
            self.stopping = True
            self.wake.notify()
        if self.thread.ident is not None:
            self.thread.join(timeout)

    @torch.inference_mode()
    def loop(self) -> None:
        """Take steps while there are requests; wait while there are none."""
        while True:
            with self.wake:
                while not (self.waiting or self.running or self.stopping):
                    self.wake.wait()
                if self.stopping and not (self.waiting or self.running):
                    return
                expired = self.take_expired()
                joining, calls = self.take_waiting()
            events: list[tuple[Ticket, Event]] = [(ticket, End(reason)) for ticket, reason in expired]
            events += self.call(calls) if calls else []
            events += self.advance(joining)
            if events:
                self.deliver(self.dispatch, events)

    def dispatch(self, events: Sequence[tuple[Ticket, Event]]) -> None:
        """Pass the events of a step to those who asked."""
        for ticket, event in events:
            ticket.receive(event)

    def take_expired(self) -> list[tuple[Ticket, Reason]]:
        """Remove the requests from the queue that nobody waits for any more."""
        expired = [(ticket, reason) for ticket in self.waiting if (reason := self.expired(ticket))]
        for ticket, _ in expired:
            self.waiting.remove(ticket)
        return expired

    def expired(self, ticket: Ticket) -> Reason | None:
        """Why a request has to end now, if it has to."""
        if ticket.cancelled:
            return "cancelled"
        return "time" if time.monotonic() - ticket.started > self.limits.seconds else None

    def take_waiting(self) -> tuple[list[TextTicket], list[CallTicket]]:
        """Remove from the queue what is computed next: texts for the free places, and calls with equal keys."""
        joining: list[TextTicket] = []
        calls: list[CallTicket] = []
        left: deque[Ticket] = deque()
        for ticket in self.waiting:
            if isinstance(ticket, TextTicket) and self.fits(ticket, joining):
                joining.append(ticket)
            elif isinstance(ticket, CallTicket) and self.shares(ticket, calls):
                calls.append(ticket)
            else:
                left.append(ticket)
        self.waiting = left
        self.calling = len(calls)
        return joining, calls

    def fits(self, ticket: TextTicket, joining: Sequence[TextTicket]) -> bool:
        """Whether a text can join in this step, with those that already do."""
        together = [*joining, ticket]
        if len(self.running) + len(together) > self.limits.batch or len(together) > PREFILL_PROMPTS:
            return False
        width = max(len(each.row.prompt) for each in together)
        return not joining or width * len(together) <= PREFILL_TOKENS

    def shares(self, ticket: CallTicket, calls: Sequence[CallTicket]) -> bool:
        """Whether a call can be joined with others."""
        inputs = sum(len(each.inputs) for each in calls) + len(ticket.inputs)
        return not calls or (ticket.key == calls[0].key and inputs <= self.limits.batch)

    def call(self, tickets: Sequence[CallTicket]) -> list[tuple[Ticket, Event]]:
        """Compute the results of calls that share a key; if one is refused, each alone, so that others are answered."""
        inputs = [each for ticket in tickets for each in ticket.inputs]
        try:
            results = list(tickets[0].call(inputs))
        except Exception as error:
            if len(tickets) > 1:
                return [event for ticket in tickets for event in self.call([ticket])]
            return [(tickets[0], End(error=reported(error)))]
        finally:
            self.calling = 0
        events: list[tuple[Ticket, Event]] = []
        for ticket in tickets:
            count = len(ticket.inputs)
            events.append((ticket, End(result=results[:count])))
            results = results[count:]
            self.count(ticket)
        return events

    def advance(self, joining: Sequence[TextTicket]) -> list[tuple[Ticket, Event]]:
        """Write a token of each running text; texts that have ended leave."""
        if self.batch is None:
            return [(ticket, End(error=UserError("this run writes no text"))) for ticket in joining]
        events: list[tuple[Ticket, Event]] = []
        for ticket in list(self.running.values()):
            if reason := self.expired(ticket):
                events.append((ticket, End(reason)))
                del self.running[id(ticket.row)]
        self.batch.keep([ticket.row for ticket in self.running.values()])
        self.running |= {id(ticket.row): ticket for ticket in joining}
        self.tokens_read += sum(len(ticket.row.prompt) for ticket in joining)
        try:
            written = self.batch.advance([ticket.row for ticket in joining])
        except Exception as error:
            return events + self.fail(error)
        self.tokens_written += len(written)
        for row, token in written:
            ticket = self.running[id(row)]
            ended = token.id == self.end
            if not ended:
                events.append((ticket, token))
            if ended or row.written >= row.tokens:
                events.append((ticket, End("stop" if ended else "length")))
                del self.running[id(row)]
                self.count(ticket)
        self.batch.keep([ticket.row for ticket in self.running.values()])
        return events

    def fail(self, error: Exception) -> list[tuple[Ticket, Event]]:
        """End all running texts with an error; later requests start with an empty batch."""
        assert self.batch is not None
        tickets = list(self.running.values())
        self.running.clear()
        self.batch.keep([])
        return [(ticket, End(error=reported(error))) for ticket in tickets]

    def count(self, ticket: Ticket) -> None:
        """Update how long a request takes."""
        self.seconds += 0.1 * (time.monotonic() - ticket.started - self.seconds)


def reported(error: Exception) -> Exception:
    """Return an error for the client; one that is our own fault is also printed, with where it was raised."""
    if not isinstance(error, UserError):
        traceback.print_exception(error)
    return error
