"""An engine that runs, requests to it, and what each should get."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.search import greedy, sample
from clearhead.decode.steps import StopCriteria
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.serve.engine import Engine
from clearhead.serve.limits import Limits
from clearhead.serve.rows import Row, Token
from clearhead.serve.tickets import Call, CallTicket, End, Event, TextTicket, at_once
from patience import PATIENCE


@contextmanager
def running(run: Run, **limits: Any) -> Iterator[Engine]:
    """An engine that is stopped at the end."""
    engine = Engine(run, Limits(**limits))
    engine.start()
    try:
        yield engine
    finally:
        engine.stop(PATIENCE)
        assert not engine.thread.is_alive()


class Asked:
    """A request and its events so far."""

    def __init__(self, engine: Engine, prompt: list[int], tokens: int = 20, **options: Any) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.ticket = TextTicket(self.events.put, Row(prompt, tokens, **options))
        engine.submit(self.ticket)

    def ids(self) -> tuple[list[int], End]:
        ids = []
        while isinstance(event := self.events.get(timeout=PATIENCE), Token):
            ids.append(event.id)
        return ids, event


class Called:
    """A request with inputs of a call."""

    def __init__(self, engine: Engine, call: Call, inputs: list[Any]) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.ticket = CallTicket(self.events.put, call, inputs)
        engine.submit(self.ticket)

    def end(self) -> End:
        event = self.events.get(timeout=PATIENCE)
        assert isinstance(event, End)
        return event


def hold(engine: Engine) -> threading.Event:
    """Keep the engine busy until the event is set, whatever its limits of time."""
    begun, released = threading.Event(), threading.Event()

    def wait(inputs: list[Any]) -> list[Any]:
        begun.set()
        released.wait(PATIENCE)
        return inputs

    ticket = CallTicket(lambda _: None, Call("wait", at_once(wait)), [0])
    ticket.started += 10 * PATIENCE  # so that it does not expire
    engine.submit(ticket)
    assert begun.wait(PATIENCE)
    return released


def alone(
    run: Run, prompt: list[int], tokens: int, choice: SamplingSettings | None, seed: int
) -> tuple[list[int], bool]:
    """The ids of a text that is written without an engine, and whether it ended by itself."""
    assert isinstance(run.model, DecoderOnly)
    tokenizer = run.tokenizers.target
    ending = StopCriteria((tokenizer.end,), tokenizer.pad, tokens)
    with torch.inference_mode():
        prefill = run.model.start(torch.tensor([prompt]))
    if choice is None:
        [found] = greedy(run.model, prefill, ending)
    else:
        [found] = sample(run.model, prefill, ending, choice, [seed], [prompt])
    return found.ids, found.ended
