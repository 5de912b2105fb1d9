"""The web application: endpoints, errors, metrics, and engines that start and stop with it."""

# Annotations are evaluated here, unlike elsewhere: FastAPI reads them.

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from clearhead.config import UserError
from clearhead.inspect.web.origin import Gate
from clearhead.runs import Run
from clearhead.serve import api, openai_api, pages
from clearhead.serve.answers import DisconnectedError, answer_error, error_answer
from clearhead.serve.guard import Guard
from clearhead.serve.limits import Limits
from clearhead.serve.metrics import Metrics
from clearhead.serve.service import Service, TimeLimitError
from clearhead.serve.tickets import BusyError, StoppedError
from clearhead.tasks import TASKS

KNOWN_ERRORS = (UserError, BusyError, StoppedError, TimeLimitError, DisconnectedError, Exception)
ERRORS = {
    400: "The request is refused; the message says why",
    401: "The API key is missing or wrong",
    403: "The request comes from another site",
    404: "There is no such run",
    408: "The request did not arrive in time",
    413: "The body is too large",
    422: "The request does not match the schema",
    429: "The queue is full; try again after Retry-After seconds",
    503: "The server is stopping, or has too many connections; try again after Retry-After seconds",
    504: "The request reached its time limit before it was answered",
}
SAID = {"type": "object", "properties": {"message": {"type": "string"}}}
ERROR_SCHEMA = {"type": "object", "required": ["error"], "properties": {"error": SAID}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": ERROR_SCHEMA}}}
    for status, text in ERRORS.items()
}


def build_app(runs: Sequence[Run], limits: Limits, gate: Gate, key: str = "") -> FastAPI:
    """Return the application that serves these runs; with a key, requests need it."""
    service = Service(runs, limits)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(title="clearhead", lifespan=lifespan, docs_url=None, redoc_url=None, responses=RESPONSES)
    app.add_middleware(Guard, gate=gate, key=key, observe=metrics.observe)
    for error in KNOWN_ERRORS:
        app.add_exception_handler(error, answer_error)
    app.add_exception_handler(StarletteHTTPException, answer_http_error)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.include_router(api.routes(service))
    app.include_router(openai_api.routes(service))
    app.include_router(pages.routes())
    if not key:  # a browser would have to send the key with every file of the page
        app.include_router(pages.Explorers(service).routes())
    add_probes(app, service, metrics, bool(key))
    return app


def add_probes(app: FastAPI, service: Service, metrics: Metrics, locked: bool) -> None:
    """Add the endpoints for monitoring."""

    @app.get("/health", tags=["server"], summary="Whether the engines are alive")
    async def health() -> JSONResponse:
        alive = all(engine.thread.is_alive() for engine in service.engines.values())
        return JSONResponse({"status": "ok" if alive else "an engine has died"}, 200 if alive else 503)

    @app.get("/ready", tags=["server"], summary="Whether requests are accepted")
    async def ready() -> JSONResponse:
        full = [name for name, engine in service.engines.items() if len(engine.waiting) >= service.limits.queue]
        accepting = service.started and not full
        tasks = {name: run.recipe.data.task for name, run in service.runs.items()}
        runs = [{"name": name, "task": task, "verb": TASKS[task].verbs[0]} for name, task in tasks.items()]
        return JSONResponse({"ready": accepting, "key": locked, "runs": runs}, 200 if accepting else 503)

    @app.get("/metrics", tags=["server"], summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def read_metrics() -> PlainTextResponse:
        return PlainTextResponse(metrics.text(service), media_type="text/plain; version=0.0.4")


def answer_http_error(_: Request, error: Exception) -> JSONResponse:
    """Answer a request for a path or a method that does not exist."""
    assert isinstance(error, StarletteHTTPException | HTTPException)
    headers = dict(error.headers) if error.headers else None
    reason = f": {error.__cause__}" if error.__cause__ else ""  # why a body cannot be read
    return error_answer(error.status_code, f"{error.detail}{reason}", "invalid_request_error", headers)


def answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that does not fit the schema: which field, and why."""
    assert isinstance(error, RequestValidationError)
    reasons = "; ".join(describe_invalid(each) for each in error.errors()[:8]).encode(errors="replace").decode()
    status = 400 if request.url.path.startswith("/v1/") else 422  # as OpenAI's API
    return error_answer(status, reasons, "invalid_request_error", param=field_of(error.errors()[0]))


def describe_invalid(error: dict[str, Any]) -> str:
    """What is wrong with a field, or with the body if it is not JSON."""
    if error["type"] == "json_invalid":
        return f"body: not JSON, at character {error['loc'][-1]}: {error['ctx']['error']}"
    if error["type"] == "extra_forbidden":
        return f"{field_of(error)} is not supported; leave it out"
    if not (field := field_of(error)):
        return "body: must be a JSON object, sent with Content-Type: application/json"
    return f"{field}: {error['msg']}"


def field_of(error: dict[str, Any]) -> str | None:
    """The field that is wrong, if it is not the whole body."""
    return None if error["type"] == "json_invalid" else ".".join(map(str, error["loc"][1:])) or None
