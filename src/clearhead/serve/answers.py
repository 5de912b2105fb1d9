"""How answers are sent: errors as JSON, texts as server-sent events; and what happens if the client disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse, StreamingResponse

from clearhead.config import UserError
from clearhead.serve.service import Piece, Text, TimeLimitError, UnknownModelError
from clearhead.serve.tickets import BusyError, StoppedError

T = TypeVar("T")
STREAMED: dict[int | str, dict[str, Any]] = {  # for the schema: the answer of an endpoint that may stream
    200: {"description": "The answer, whole or as events", "content": {"application/json": {}, "text/event-stream": {}}}
}
MOST_SAID = 1000  # characters of an error, which may repeat what the client has sent
CLIENT_LEFT = 499  # never sent, but counted in the metrics


class DisconnectedError(Exception):
    """The client has closed the connection."""


def error_body(message: str, kind: str, param: str | None = None) -> dict[str, Any]:
    """The JSON of an error, in the form that OpenAI's clients read; `param` is the field that is wrong."""
    return {"error": {"message": message[:MOST_SAID], "type": kind, "param": param and param[:MOST_SAID], "code": None}}


def error_answer(
    status: int, message: str, kind: str, headers: dict[str, str] | None = None, param: str | None = None
) -> JSONResponse:
    """An error as JSON."""
    return JSONResponse(error_body(message, kind, param), status, headers)


def describe_error(error: Exception) -> tuple[int, str, str]:
    """Return the status, the message and the kind of an error."""
    match error:
        case UnknownModelError():
            return 404, str(error), "not_found_error"
        case UserError():
            return 400, str(error), "invalid_request_error"
        case BusyError():
            return 429, str(error), "rate_limit_error"
        case StoppedError():
            return 503, str(error), "unavailable_error"
        case TimeLimitError():
            return 504, str(error), "timeout_error"
        case DisconnectedError():
            return CLIENT_LEFT, "the client has disconnected", "cancelled"
        case _:
            return 500, "the request failed; the server's log has the error", "server_error"


def answer_error(_: Request, error: Exception) -> JSONResponse:
    """Answer with an error; without a traceback."""
    status, message, kind = describe_error(error)
    headers = {"Retry-After": str(error.seconds)} if isinstance(error, BusyError) else None
    return error_answer(status, message, kind, headers)


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work; cancel it when the client closes the connection."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(disconnected(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise DisconnectedError
        return task.result()
    finally:
        task.cancel()
        watch.cancel()


async def disconnected(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def pieces_of(texts: Sequence[Text]) -> AsyncIterator[tuple[int, Piece]]:
    """Yield the pieces of several texts as they are generated, each with the number of its text."""
    pieces: asyncio.Queue[tuple[int, Piece | Exception | None]] = asyncio.Queue()

    async def read(number: int, text: Text) -> None:
        try:
            async for piece in text:
                pieces.put_nowait((number, piece))
            pieces.put_nowait((number, None))
        except Exception as error:
            pieces.put_nowait((number, error))

    tasks = [asyncio.create_task(read(number, text)) for number, text in enumerate(texts)]
    try:
        open_texts = len(texts)
        while open_texts:
            number, piece = await pieces.get()
            if isinstance(piece, Exception):
                raise piece
            if piece is None:
                open_texts -= 1
            else:
                yield number, piece
    finally:
        for task in tasks:
            task.cancel()
        for text in texts:
            text.close()


async def collect(texts: Sequence[Text]) -> list[list[Piece]]:
    """Return all pieces of each text."""
    found: list[list[Piece]] = [[] for _ in texts]
    async for number, piece in pieces_of(texts):
        found[number].append(piece)
    return found


def event_stream(objects: AsyncIterator[dict[str, Any]]) -> StreamingResponse:
    """Server-sent events, one for each object, then [DONE]; an error during the stream is an event as well."""

    async def lines() -> AsyncIterator[str]:
        try:
            async for each in objects:
                yield f"data: {json.dumps(each)}\n\n"
        except Exception as error:
            _, message, kind = describe_error(error)
            yield f"data: {json.dumps(error_body(message, kind))}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
