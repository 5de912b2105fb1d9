"""Servers of tiny runs: in this process, or on a port of this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

for package in ("fastapi", "uvicorn"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clearhead[serve]'")

from fastapi.testclient import TestClient as TestClient

from clearhead.inspect.web.origin import Gate
from clearhead.runs import Run
from clearhead.serve.app import build_app
from clearhead.serve.limits import Limits
from clearhead.serve.server import listen, server_of
from patience import PATIENCE

PORT = 8000  # of the client in this process, which has none


@contextmanager
def client_of(runs: Sequence[Run], key: str = "", **limits: Any) -> Iterator[TestClient]:
    """A client of a server in this process."""
    app = build_app(runs, Limits(**limits), Gate("127.0.0.1", PORT), key)
    with TestClient(app, f"http://127.0.0.1:{PORT}", raise_server_exceptions=False) as client:
        yield client


@contextmanager
def served(runs: Sequence[Run], key: str = "", **limits: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    listener = listen("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # so that a client soon holds up its answer
    port = listener.getsockname()[1]
    app = build_app(runs, Limits(**limits), Gate("127.0.0.1", port), key)
    server = server_of(app, Limits(**limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()
