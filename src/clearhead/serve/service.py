"""The runs of a server: which run answers a request; submits requests to its engine and receives the events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from clearhead.config import UserError, require
from clearhead.runs import Run
from clearhead.serve.engine import Engine
from clearhead.serve.limits import Limits
from clearhead.serve.rows import Row, Token
from clearhead.serve.stops import StoppedText
from clearhead.serve.tickets import Call, CallTicket, End, Event, Reason, TextTicket
from clearhead.tasks import TASKS


class UnknownModelError(UserError):
    """There is no run of this name."""


class TimeLimitError(Exception):
    """A request reached its time limit before there was anything to answer."""


@dataclass(frozen=True)
class Piece:
    """The characters that a token adds to a text, possibly none; the last piece has the reason of the end."""

    text: str
    token: Token | None = None
    reason: Reason | None = None
    offset: int = 0  # where the token begins in the text


@dataclass
class Text:
    """A text that is being generated: iterate over its pieces; closing it cancels the request."""

    ticket: TextTicket
    inbox: asyncio.Queue[Event]
    decoded: StoppedText
    written: int = field(default=0, init=False)  # tokens so far

    async def __aiter__(self) -> AsyncIterator[Piece]:
        try:
            while isinstance(event := await self.inbox.get(), Token):
                self.written += 1
                added = self.decoded.push(event.id)
                reason: Reason | None = "stop" if self.decoded.stopped else None
                yield Piece(added, event, reason, self.decoded.stream.offset)
                if self.decoded.stopped:
                    return
            if event.error is not None:
                raise event.error
            if event.reason == "time" and not self.written:
                raise TimeLimitError("the request reached its time limit while it waited; try again later")
            yield Piece(self.decoded.finish(), None, event.reason)
        finally:
            self.close()

    def close(self) -> None:
        """Cancel the request, in the batch or in the queue."""
        self.ticket.cancel()


class Service:
    """All runs of a server by name, with their engines."""

    def __init__(self, runs: Sequence[Run], limits: Limits) -> None:
        names = [run.folder.resolve().name for run in runs]
        require(bool(runs), "give the folder of at least one run: clearhead serve RUN")
        require(len(set(names)) == len(names), f"the runs {', '.join(names)}: names must differ; rename one")
        self.runs = dict(zip(names, runs, strict=True))
        self.limits = limits
        self.engines: dict[str, Engine] = {}
        self.started = False

    def start(self) -> None:
        """Start the engines; their events are received in the event loop that runs now."""
        loop = asyncio.get_running_loop()
        self.engines = {name: Engine(run, self.limits, loop.call_soon_threadsafe) for name, run in self.runs.items()}
        for engine in self.engines.values():
            engine.start()
        self.started = True

    async def stop(self) -> None:
        """Finish all accepted requests, then stop the engines."""
        self.started = False
        await asyncio.gather(*(asyncio.to_thread(engine.stop, self.limits.seconds) for engine in self.engines.values()))

    def find(self, name: str | None, verb: str = "") -> tuple[str, Engine]:
        """Return the run of this name; without one, the first run that the verb can be used with."""
        fitting = [each for each, run in self.runs.items() if not verb or verb in TASKS[run.recipe.data.task].verbs]
        if name is None:
            require(bool(fitting), f"no run of this server can {verb}; its runs: {', '.join(self.runs)}")
            return fitting[0], self.engines[fitting[0]]
        if name not in self.runs:
            raise UnknownModelError(f"model = {name!r}: there is no such run; known: {', '.join(self.runs)}")
        task = self.runs[name].recipe.data.task
        require(
            name in fitting,
            f"model = {name!r}: it was trained for {task} and cannot {verb}; "
            + (f"runs that can: {', '.join(fitting)}" if fitting else "no run of this server can"),
        )
        return name, self.engines[name]

    def check_texts(self, texts: Sequence[str], more: str = "") -> None:
        """Refuse too many or too long texts; `more` counts as well."""
        limits = self.limits
        require(1 <= len(texts) <= limits.texts, f"{len(texts):,} texts: a request has 1 to {limits.texts:,}")
        characters = sum(map(len, [*texts, more]))
        require(
            characters <= limits.characters,
            f"{characters:,} characters: a request has at most {limits.characters:,}; send the texts in several",
        )

    def write(self, engine: Engine, rows: Sequence[Row], stop: Sequence[str] = ()) -> list[Text]:
        """Submit rows to generate; if the queue has no space for one of them, all are cancelled."""
        texts: list[Text] = []
        with ExitStack() as undo:
            for row in rows:
                require(
                    row.tokens <= self.limits.tokens,
                    f"{row.tokens:,} new tokens: this server writes at most {self.limits.tokens:,}",
                )
                inbox: asyncio.Queue[Event] = asyncio.Queue()
                ticket = TextTicket(inbox.put_nowait, row)
                engine.submit(ticket)
                undo.callback(ticket.cancel)
                texts.append(Text(ticket, inbox, StoppedText(engine.run.tokenizers.target, row.prompt, stop)))
            undo.pop_all()
        return texts

    async def call(self, engine: Engine, call: Call, inputs: list[Any]) -> list[Any]:
        """Return the results of a call, one for each input."""
        done: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

        def receive(event: Event) -> None:
            if not done.done():
                done.set_result(event)

        ticket = CallTicket(receive, call, inputs)
        engine.submit(ticket)
        try:
            event = await done
        finally:
            ticket.cancel()
        assert isinstance(event, End)
        if event.error is not None:
            raise event.error
        if event.reason == "time":
            raise TimeLimitError("the request reached its time limit; try again later, or with fewer texts")
        return list(event.result)
