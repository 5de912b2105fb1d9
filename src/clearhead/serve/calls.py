"""Calls in progress: inputs of waiting requests are computed in groups, and the groups take turns, step by step.

A group has inputs with equal keys, of one request or of several, and about as many rows as the running batch of texts.
A request with more inputs than that has several groups, one after the other: it goes back to the end of the queue, and
has one group at a time. So neither a long text nor a request with many texts delays the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clearhead.serve.limits import Limits
from clearhead.serve.tickets import CallTicket, End, Event, Steps, Ticket, reported

GROUPS = 4  # groups that take turns: more of them would be smaller, and less efficient


@dataclass(frozen=True)
class Part:
    """Some of the inputs of a request."""

    ticket: CallTicket
    inputs: slice

    def given(self) -> list[Any]:
        """The inputs themselves."""
        return self.ticket.inputs[self.inputs]


class CallGroup:
    """Parts of requests that are computed together."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.steps: Steps = parts[0].ticket.call.begin([each for part in parts for each in part.given()])

    def finish(self, results: Sequence[Any]) -> list[tuple[Ticket, Event]]:
        """Give the requests their results; return an event for each that has all of them."""
        found = iter(results)
        complete: list[tuple[Ticket, Event]] = []
        for part in self.parts:
            ticket = part.ticket
            own = [next(found) for _ in part.given()]
            ticket.results[part.inputs] = own
            ticket.missing -= len(own)
            if not ticket.missing:
                complete.append((ticket, End(result=ticket.results)))
        return complete


class RunningCalls:
    """The groups that are being computed."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.groups: list[CallGroup] = []

    @property
    def tickets(self) -> list[CallTicket]:
        """The requests that have inputs in a group."""
        return list(dict.fromkeys(part.ticket for group in self.groups for part in group.parts))

    def take(self, waiting: deque[Ticket]) -> None:
        """Begin a group with inputs from the queue: those of the first call, and of others with the same key."""
        running = self.tickets
        calls = [each for each in waiting if isinstance(each, CallTicket) and each not in running]
        if not calls or len(self.groups) >= GROUPS:
            return
        call = calls[0].call
        space = max(1, self.limits.batch // call.rows)
        parts = []
        for ticket in calls:
            if ticket.call.key == call.key and (space or not ticket.inputs):
                count = min(space, len(ticket.inputs) - ticket.taken)
                parts.append(Part(ticket, slice(ticket.taken, ticket.taken + count)))
                ticket.taken += count
                space -= count
                waiting.remove(ticket)
                if ticket.taken < len(ticket.inputs):
                    waiting.append(ticket)
        self.groups.append(CallGroup(parts))

    def end_expired(self) -> list[tuple[Ticket, Event]]:
        """End the requests that have reached their time limit, and the groups whose requests are all cancelled."""
        ended: list[tuple[Ticket, Event]] = []
        for ticket in self.tickets:
            if not ticket.cancelled and (reason := ticket.expired(self.limits.seconds)):
                ended.append((ticket, End(reason)))
                ticket.cancel()
        self.groups = [group for group in self.groups if not all(part.ticket.cancelled for part in group.parts)]
        return ended

    def advance(self) -> list[tuple[Ticket, Event]]:
        """Compute a step of each group."""
        events = self.end_expired()
        for group in list(self.groups):
            try:
                next(group.steps)
            except StopIteration as ended:
                self.groups.remove(group)
                events += group.finish(ended.value)
            except Exception as error:
                self.groups.remove(group)
                events += self.refuse(group, error)
        return events

    def refuse(self, group: CallGroup, error: Exception) -> list[tuple[Ticket, Event]]:
        """Report the error to the request of a failed group; a group of several requests is retried one by one."""
        if len(group.parts) > 1:
            self.groups += [CallGroup([part]) for part in group.parts]
            return []
        ticket = group.parts[0].ticket
        ended = ticket.cancelled
        ticket.cancel()
        return [] if ended else [(ticket, End(error=reported(error)))]
