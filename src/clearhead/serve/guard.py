"""Security of the server: origin of requests, API key, size of bodies, and response headers."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.inspect.web.origin import Gate
from clearhead.inspect.web.server import HEADERS
from clearhead.serve.answers import error_answer

LARGEST_BODY = 2**21  # bytes
OPEN = ("/", "/health", "/ready", "/docs", "/openapi.json", "/page/")  # need no key; folders end with a slash
TOO_LARGE = f"a request has at most {LARGEST_BODY:,} bytes"

Observe = Callable[[str, int, float], None]  # the endpoint, the status and the seconds of a request


class Guard:
    """Middleware: refuses requests that are not allowed before their body is read, and observes all answers."""

    def __init__(self, app: ASGIApp, gate: Gate, key: str, observe: Observe) -> None:
        self.app = app
        self.gate = gate
        self.key = key.encode()
        self.observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # uvicorn, which has the other one, leaves out the body
        begin = time.monotonic()
        status = 500

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self.refusal(scope) or self.app
        try:
            await answer(scope, bounded(receive), watched_send)
        finally:
            route = scope.get("route")
            self.observe(getattr(route, "path", "other"), status, time.monotonic() - begin)

    def refusal(self, scope: Scope) -> Response | None:
        """Return an error if a request is not allowed."""
        headers = Headers(scope=scope)
        if not self.gate.accepts(headers.get("host"), headers.get("origin"), headers.get("sec-fetch-site")):
            message = "this Host, Origin or Sec-Fetch-Site is not accepted; name the server's hosts with --name"
            return error_answer(403, message, "permission_error")
        if self.key and not is_open(scope["path"]) and not self.has_key(headers):
            message = "this server needs its API key: Authorization: Bearer KEY"
            return error_answer(401, message, "authentication_error", {"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return error_answer(413, TOO_LARGE, "invalid_request_error")
        return None

    def has_key(self, headers: Headers) -> bool:
        """Whether a request has the key; the comparison takes constant time."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return hmac.compare_digest(given.strip().encode(), self.key) and scheme.lower() == "bearer"


def is_open(path: str) -> bool:
    """Whether a path needs no key."""
    return any(path.startswith(each) if each.endswith("/") and each != "/" else path == each for each in OPEN)


def bounded(receive: Receive) -> Receive:
    """Receive a body up to the limit, even if its Content-Length is wrong or missing."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return limited
