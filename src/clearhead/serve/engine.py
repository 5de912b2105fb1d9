"""Continuous batching: one thread owns a model, and requests join and leave its batch at each decode step.

Two kinds of requests wait in one bounded queue. A `TextTicket` is generated token by token: it joins the running batch
as soon as there is space, and leaves it at its end. A `CallTicket` has inputs that are computed in groups (calls.py),
a step of each group between two decode steps.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from clearhead.config import UserError
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.serve.calls import RunningCalls
from clearhead.serve.limits import Limits
from clearhead.serve.rows import RunningBatch
from clearhead.serve.tickets import BusyError, End, Event, StoppedError, TextTicket, Ticket, reported

PREFILL_TOKENS = 2048  # of prompts that join in one step, padding included: more would delay the running rows
PREFILL_PROMPTS = 32


def call_directly(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in the engine's own thread."""
    function(*arguments)


class Engine:
    """The thread that owns the model of a run."""

    def __init__(self, run: Run, limits: Limits, deliver: Callable[..., object] = call_directly) -> None:
        """Create the thread, not started; `deliver(function, events)` lets the receiver of events call a function."""
        self.run = run
        self.limits = limits
        self.deliver = deliver
        self.waiting: deque[Ticket] = deque()
        self.running: dict[int, TextTicket] = {}  # by the identity of its row
        self.calls = RunningCalls(limits)
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
        return len(self.running) + len(self.calls.tickets)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Put a request into the queue, from any thread; raises BusyError if it is full."""
        with self.wake:
            if self.stopping:
                raise StoppedError("the server is stopping; send the request to another one, or again later")
            if len(self.waiting) >= self.limits.queue:  # drop cancelled requests first
                self.waiting = deque(each for each in self.waiting if not each.cancelled)
            if len(self.waiting) >= self.limits.queue:
                raise BusyError(max(1, round(self.seconds * (1 + len(self.waiting) / self.limits.batch))))
            self.waiting.append(ticket)
            self.wake.notify()

    def stop(self, timeout: float | None = None) -> None:
        """Accept no more requests; return when all accepted ones are done, or after `timeout` seconds."""
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
                while not (self.busy or self.stopping):
                    self.wake.wait()
                if not self.busy:
                    return
                events = self.take_expired()
                joining = self.take_texts()
                self.calls.take(self.waiting)
            events += self.calls.advance()
            events += self.advance(joining)
            for ticket, event in events:
                if isinstance(event, End) and event.reason in ("stop", "length"):
                    self.seconds += 0.1 * (time.monotonic() - ticket.started - self.seconds)
            if events:
                self.deliver(self.dispatch, events)

    @property
    def busy(self) -> bool:
        """Whether there are requests."""
        return bool(self.waiting or self.running or self.calls.groups)

    def dispatch(self, events: Sequence[tuple[Ticket, Event]]) -> None:
        """Send the events of a decode step to their requests."""
        for ticket, event in events:
            ticket.receive(event)

    def take_expired(self) -> list[tuple[Ticket, Event]]:
        """Remove cancelled requests, and those that have reached their time limit, from the queue."""
        expired = [(each, End(reason)) for each in self.waiting if (reason := each.expired(self.limits.seconds))]
        for ticket, _ in expired:
            self.waiting.remove(ticket)
            ticket.cancel()
        return list(expired)

    def take_texts(self) -> list[TextTicket]:
        """Take texts from the queue, as many as fit into the batch."""
        joining: list[TextTicket] = []
        for ticket in list(self.waiting):
            if isinstance(ticket, TextTicket) and self.fits(ticket, joining):
                joining.append(ticket)
                self.waiting.remove(ticket)
        return joining

    def fits(self, ticket: TextTicket, joining: Sequence[TextTicket]) -> bool:
        """Whether a text can join the batch in this step, together with those in `joining`."""
        together = [*joining, ticket]
        if len(self.running) + len(together) > self.limits.batch or len(together) > PREFILL_PROMPTS:
            return False
        width = max(len(each.row.prompt) for each in together)
        return not joining or width * len(together) <= PREFILL_TOKENS

    def advance(self, joining: Sequence[TextTicket]) -> list[tuple[Ticket, Event]]:
        """Generate a token of each running text; finished texts leave the batch."""
        if self.batch is None:
            return [(ticket, End(error=UserError("this run cannot generate text"))) for ticket in joining]
        events: list[tuple[Ticket, Event]] = []
        for ticket in list(self.running.values()):
            if reason := ticket.expired(self.limits.seconds):
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
        self.batch.keep([ticket.row for ticket in self.running.values()])
        return events

    def fail(self, error: Exception) -> list[tuple[Ticket, Event]]:
        """End all running texts with an error; later requests start with an empty batch."""
        assert self.batch is not None
        tickets = list(self.running.values())
        self.running.clear()
        self.batch.keep([])
        return [(ticket, End(error=reported(error))) for ticket in tickets]
