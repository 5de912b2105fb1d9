"""The server of `clearhead explore`: the page and its answers over HTTP, on this machine only.

Security: only the files of the page are served; requests must come from the page itself (origin.py); sizes are limited;
only the page's own scripts may run.
"""

from __future__ import annotations

import json
import math
import mimetypes
import os
import socket
import sys
import time
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import torch

from clearhead.config import UserError, require
from clearhead.inspect.web.explorer import Answer, Explorer
from clearhead.inspect.web.origin import Gate

PAGE = Path(__file__).parent / "page"
LARGEST_REQUEST = 65_536  # bytes, of an address or of a body
MOST_CONNECTIONS = 100
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
mimetypes.add_type("text/javascript", ".js")


def page_files() -> dict[str, Path]:
    """Every file that is served, by its address."""
    files = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file()}
    return {"": files["index.html"], **files}


def most_connections() -> int:
    """How many connections the free descriptors of this process suffice for, if each may open a file."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, which has no such limit
        return sys.maxsize
    return max(1, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(os.listdir("/dev/fd"))) // 3)


def finite(found: Any) -> Any:
    """An answer without infinite numbers and NaN, which JSON does not have: they become null."""
    if isinstance(found, dict):
        return {key: finite(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


def encode_answer(found: Answer) -> tuple[bytes, str, dict[str, str]]:
    """An answer as the body of a response, with its media type and headers: JSON, or the numbers of tensors."""
    if isinstance(found, dict):
        return json.dumps(finite(found)).encode(), "application/json", {}
    tensors = found if isinstance(found, list) else [found]
    shapes = ";".join(",".join(map(str, tensor.shape)) for tensor in tensors)
    data = b"".join(tensor.to(torch.float32).contiguous().numpy().tobytes() for tensor in tensors)
    return data, "application/octet-stream", {"X-Shape": shapes}


def read_traces(body: bytes) -> list[str] | None:
    """The traces that a page wants to close, or None if the body of its request is something else."""
    try:
        traces = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return traces if isinstance(traces, list) and all(isinstance(each, str) for each in traces) else None


class Server(ThreadingHTTPServer):
    """Serves one explorer to the browsers of this machine."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS  # that wait to be accepted

    def __init__(self, explorer: Explorer, host: str = "127.0.0.1", port: int = 0) -> None:
        require(0 <= port < 2**16, f"--port {port}: expected 0 to {2**16 - 1}")
        self.explorer = explorer
        self.host = host
        self.files = page_files()
        self.room = min(MOST_CONNECTIONS, most_connections())
        self.since: dict[Any, float] = {}  # connection -> when it began to wait for a request; never: it is computed
        try:
            super().__init__((host, port), RequestHandler)
        except OSError as error:
            raise UserError(
                f"--host {host} --port {port}: {error.strerror}; choose another --host or --port (0: any)"
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; if there are too many, the connection that has waited longest for a request ends."""
        since = self.since.copy()  # other threads change it
        if len(since) >= self.room:
            oldest = min(since, key=since.__getitem__)
            if since[oldest] == math.inf:
                request.sendall(BUSY)
                self.shutdown_request(request)
                return
            self.end(oldest)
        self.since[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End the connections whose request does not arrive in time; called twice a second."""
        for connection, since in self.since.copy().items():
            if time.monotonic() - since > RequestHandler.timeout:
                self.end(connection)

    def end(self, connection: Any) -> None:
        """Let the thread of a connection see its end."""
        self.since.pop(connection, None)
        with suppress(OSError):  # the client was faster
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.since.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors, except that a browser closed its connection before the end of an answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @cached_property
    def gate(self) -> Gate:
        """Which requests are accepted."""
        return Gate(self.host, self.server_port)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/"


class RequestHandler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a client has to send a request, or to read the answer

    def handle_one_request(self) -> None:
        """Answer the next request."""
        self.server.since[self.connection] = time.monotonic()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Send a file of the page, or an answer."""
        if not self.trusted():
            return
        address, _, query = self.path.partition("?")
        path = address.removeprefix("/")
        if path.startswith("api/"):
            self.answer(path.removeprefix("api/"), dict(parse_qsl(query, keep_blank_values=True)))
        elif path in self.server.files:
            file = self.server.files[path]
            kept = {"Cache-Control": "max-age=3600"} if file.suffix == ".svg" else {}  # requested at every click
            self.send(HTTPStatus.OK, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain", kept)
        else:
            self.refuse(HTTPStatus.NOT_FOUND, f"there is no {address}")

    def do_POST(self) -> None:
        """Free the traces of a page that was closed."""
        if not self.trusted():
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {LARGEST_REQUEST:,} bytes")
            return
        body = self.rfile.read(int(length))
        traces = read_traces(body)
        if self.path != "/api/close" or traces is None:
            self.refuse(HTTPStatus.BAD_REQUEST, "only a list of traces can be sent here, to /api/close")
            return
        self.server.explorer.close(traces)
        self.send(HTTPStatus.OK, b"{}", "application/json")

    def trusted(self) -> bool:
        """Whether a request comes from the page itself; any other is refused."""
        host, origin, site = (self.headers.get(name) for name in ("Host", "Origin", "Sec-Fetch-Site"))
        if self.server.gate.accepts(host, origin, site):
            return True
        self.close_connection = True  # the body of the request is not read
        self.refuse(HTTPStatus.FORBIDDEN, "only the explorer's own page may send requests")
        return False

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Send the explorer's answer."""
        self.server.since[self.connection] = math.inf  # the client waits for the server now
        try:
            found = self.server.explorer.answer(path, query)
        except UserError as error:
            self.refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        except Exception:
            self.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"{path} failed; see the error in the terminal")
            raise
        self.send(HTTPStatus.OK, *encode_answer(found))

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Send an error message as JSON."""
        self.send(status, json.dumps({"error": message}).encode(), "application/json")

    def send(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        """Send a whole response."""
        self.send_response(status)
        text = kind.startswith("text/") or kind == "application/json"
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in {**HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: requests are frequent."""
