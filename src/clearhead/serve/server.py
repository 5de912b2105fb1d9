"""The process of the server: its socket, its key, and how it stops.

SIGTERM and Ctrl-C drain: no further request is accepted, and accepted ones are answered.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import uvicorn

from clearhead.config import UserError, require
from clearhead.inspect.web.origin import HERE, Gate
from clearhead.runs import Run
from clearhead.serve.app import build_app
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
    shown = f"[{host}]" if ":" in host else host
    note(f"{', '.join(str(run.folder) for run in runs)}: http://{shown}:{port}/ (Ctrl-C to stop)")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(limits.seconds)),
    )
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what uvicorn calls when it has drained
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, previous)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections."""
    require(0 <= port < 2**16, f"--port {port}: expected 0 to {2**16 - 1}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise UserError(f"--host {host} --port {port}: {reason}; choose another --host or --port (0: any)") from error
