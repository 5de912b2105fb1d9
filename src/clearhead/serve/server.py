"""The process of the server: its socket, its key, and how it stops.

SIGTERM and Ctrl-C drain: no further request is accepted, and accepted ones are answered.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from clearhead.config import UserError, require
from clearhead.inspect.web.origin import HERE, Gate
from clearhead.inspect.web.server import most_connections
from clearhead.runs import Run
from clearhead.serve.app import build_app
from clearhead.serve.connections import LOGGERS, REPETITIONS, Connection
from clearhead.serve.limits import Limits

KEY_VARIABLE = "CLEARHEAD_API_KEY"


def run_server(
    runs: Sequence[Run], limits: Limits, host: str, port: int, names: Sequence[str], note: Callable[[str], None]
) -> None:
    """Serve runs until SIGTERM or Ctrl-C."""
    listener = listen(host, port)
    port = listener.getsockname()[1]
    key = os.environ.get(KEY_VARIABLE, "").strip()
    app = build_app(runs, limits, Gate(host, port, names), key)
    if host not in HERE and not key:
        note(f"--host {host}: everyone who can reach this machine can use the runs; {KEY_VARIABLE}=... requires a key")
    room = most_connections()
    if room < limits.connections:
        note(f"--connections {limits.connections}: the limit of open files (ulimit -n) leaves {room} at the same time")
    shown = f"[{host}]" if ":" in host else host
    note(f"{', '.join(str(run.folder) for run in runs)}: http://{shown}:{port}/ (Ctrl-C to stop)")
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what uvicorn calls when it has drained
    try:
        server_of(app, limits).run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, previous)


class HttpServer(uvicorn.Server):
    """Accepts few connections at once, so that they can be closed before there are too many; the others wait."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept; asyncio lets as many wait as it accepts at once, and clients retry after a whole second."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(1024)


def server_of(app: ASGIApp, limits: Limits) -> HttpServer:
    """Return the server of an application, which answers in spite of slow clients, many clients and few descriptors."""
    room = most_connections()
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=min(limits.connections, room),
        backlog=max(1, min(100, room // 4)),  # that are accepted at once
        timeout_keep_alive=limits.client_seconds,
        timeout_graceful_shutdown=max(1, round(limits.seconds)),
    )
    for name in LOGGERS:
        logging.getLogger(name).addFilter(REPETITIONS)
    return HttpServer(config)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections."""
    require(0 <= port < 2**16, f"--port {port}: expected 0 to {2**16 - 1}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise UserError(f"--host {host} --port {port}: {reason}; choose another --host or --port (0: any)") from error
