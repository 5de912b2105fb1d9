"""Connections: their number, their deadlines, and their lines in the log.

uvicorn limits how long a connection may be idle (`timeout_keep_alive`), and how many there are (`limit_concurrency`).
Here the first also limits how long a client takes to send a request or to read the answer, and the second closes
connections without a complete request first.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from http import HTTPStatus
from math import inf

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from clearhead.serve.answers import error_answer

LOGGERS = ("uvicorn.error", "asyncio")
SILENCE = 60  # seconds for which the log does not repeat itself
CLOSE = {"Connection": "close"}
FULL = "too many connections are open; try again later"
LATE = "the request did not arrive in time"


def full() -> Response:
    """The answer to a request for which there is no connection left."""
    return error_answer(503, FULL, "unavailable_error", {"Retry-After": "1", **CLOSE})


class Connection(H11Protocol):
    """A connection that ends if its client takes longer than `timeout_keep_alive` for its part."""

    since = 0.0  # when the client sent or read something that counts as progress
    unread = 0  # bytes of the answer that the client had not read at the last look
    timer: asyncio.TimerHandle

    @property
    def awaited(self) -> bool:
        """Whether the client has to send a request, or the rest of one."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    @property
    def begun(self) -> bool:
        """Whether the client has sent a part of a request."""
        return self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0])

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin the first deadline; if there are too many connections, end the one that has waited longest."""
        super().connection_made(transport)
        self.limit_concurrency = None  # uvicorn would refuse requests because of idle connections
        self.since = self.loop.time()
        self.watch()
        if len(self.connections) > (self.config.limit_concurrency or sys.maxsize):
            others = [each for each in self.connections - {self} if isinstance(each, Connection) and each.awaited]
            if others:
                oldest = min(others, key=lambda each: each.since)
                oldest.end(full())
                self.connections.discard(oldest)  # it is lost later, but counts no more
            else:
                self.app = full()  # for its first request, which is also its last

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking at it."""
        self.timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request: its beginning, the end of its headers and the end of its body are progress."""
        before = self.begun, self.conn.their_state
        super().data_received(data)
        if before != (self.begun, self.conn.their_state):
            self.since = self.loop.time()

    def on_response_complete(self) -> None:
        """Begin the deadline of the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def watch(self) -> None:
        """End the connection if there was no progress for too long, or look again later."""
        unread = self.transport.get_write_buffer_size()
        if unread != self.unread or not (unread or self.awaited):
            self.since = self.loop.time()
        self.unread = unread
        if self.loop.time() - self.since >= self.config.timeout_keep_alive:
            self.end(error_answer(408, LATE, "timeout_error", CLOSE) if self.begun else None)
        else:
            self.timer = self.loop.call_later(self.config.timeout_keep_alive / 10, self.watch)

    def end(self, error: Response | None) -> None:
        """Close the connection, with an error if there is one, no answer has begun, and the client reads."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        if error and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = HTTPStatus(error.status_code)
            head = h11.Response(status_code=status, headers=error.raw_headers, reason=status.phrase.encode())
            for event in (head, h11.Data(data=bytes(error.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, with h11's reason; called while its error is handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self.end(error_answer(status, f"{msg} {error}", "invalid_request_error", CLOSE))


class Seldom(logging.Filter):
    """Lets one record of a kind pass in a minute, with the number of those that it held back since."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: dict[object, tuple[float, int]] = {}  # kind of record -> when one passed, how many have not since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is printed."""
        kind = str(record.msg).partition("\n")[0], record.exc_info and record.exc_info[0]
        when, held = self.passed.get(kind, (-inf, 0))
        pause = record.created - when
        if pause < SILENCE:
            self.passed[kind] = when, held + 1
            return False
        self.passed[kind] = record.created, 0
        record.msg = f"{record.msg} ({held:,} more of these in the last {pause:,.0f} s)" if held else record.msg
        return True


REPETITIONS = Seldom()
