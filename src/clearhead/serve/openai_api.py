"""OpenAI's API, for programs that were written for it."""

# Annotations are evaluated here, unlike elsewhere: FastAPI reads them.

import base64
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from clearhead.decode.chat import fitting_prompt
from clearhead.decode.limits import check_prompt_length, tokens_left
from clearhead.serve.answers import STREAMED, event_stream, while_connected
from clearhead.serve.api import encode_prompts, vectors_of
from clearhead.serve.engine import Engine
from clearhead.serve.openai_answers import Completion, Json
from clearhead.serve.openai_schemas import ChatRequest, CompletionRequest, EmbeddingRequest, WritingRequest
from clearhead.serve.rows import Row
from clearhead.serve.schemas import as_list
from clearhead.serve.service import Service, UnknownModelError


def routes(service: Service) -> APIRouter:
    """The endpoints of OpenAI's API."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.post("/completions", summary="Continue prompts", responses=STREAMED)
    async def completions(request: Request, asked: CompletionRequest) -> Response:
        return await send(request, asked, completion(service, asked))

    @router.post("/chat/completions", summary="Answer a conversation", responses=STREAMED)
    async def chat_completions(request: Request, asked: ChatRequest) -> Response:
        return await send(request, asked, chat(service, asked))

    @router.post("/embeddings", summary="A vector of length 1 for each text")
    async def embeddings(request: Request, asked: EmbeddingRequest) -> Json:
        return await while_connected(request, embedding(service, asked))

    @router.get("/models", summary="All runs of this server")
    async def models() -> Json:
        return {"object": "list", "data": [describe(service, name) for name in service.runs]}

    @router.get("/models/{name}", summary="One run")
    async def model(name: str) -> Json:
        if name not in service.runs:
            raise UnknownModelError(f"there is no run {name!r}; known: {', '.join(service.runs)}")
        return describe(service, name)

    return router


async def send(request: Request, asked: WritingRequest, answer: Completion) -> Response:
    """Send an answer, whole or as a stream."""
    if asked.stream:
        return event_stream(answer.chunks(asked.stream_options.include_usage))
    return JSONResponse(await while_connected(request, answer.whole()))


def completion(service: Service, asked: CompletionRequest) -> Completion:
    """Submit each prompt for `n` continuations."""
    name, engine = service.find(asked.model, "generate")
    encoded = encode_prompts(service, engine, as_list(asked.prompt), asked.max_tokens)
    return ask(service, name, engine, encoded, asked.max_tokens, asked, asked.logprobs)


def chat(service: Service, asked: ChatRequest) -> Completion:
    """Submit a conversation for `n` answers; as in `clearhead chat`, the oldest turns of a long one are dropped."""
    name, engine = service.find(asked.model, "chat")
    dialogue = asked.dialogue()
    service.check_texts([message.content for message in dialogue.messages])
    ids, _ = fitting_prompt(engine.run, dialogue, asked.tokens)
    check_prompt_length(engine.run.recipe, len(ids))
    tokens = min(asked.tokens, tokens_left(engine.run.recipe.model, len(ids)))
    return ask(service, name, engine, [ids], tokens, asked, asked.top)


def ask(
    service: Service,
    name: str,
    engine: Engine,
    prompts: list[list[int]],
    tokens: int,
    asked: WritingRequest,
    top: int | None,
) -> Completion:
    """Submit each prompt for `n` texts; each has its own seed."""
    choice = asked.choice()
    repeated = [ids for ids in prompts for _ in range(asked.n)]
    rows = [
        Row(ids, tokens, choice, None if asked.seed is None else asked.seed + number, top)
        for number, ids in enumerate(repeated)
    ]
    texts = service.write(engine, rows, as_list(asked.stop))
    chat = isinstance(asked, ChatRequest)
    return Completion(name, texts, engine.run.tokenizers.target, sum(map(len, prompts)), top is not None, chat)


async def embedding(service: Service, asked: EmbeddingRequest) -> Json:
    """The vectors of texts, as numbers or as base64 of float32."""
    name, engine = service.find(asked.model, "embed")
    texts = as_list(asked.input)
    service.check_texts(texts)
    vectors = await vectors_of(service, engine, texts)
    tokens = sum(map(len, engine.run.tokenizers.target.encode_batch(texts)))
    encode = in_base64 if asked.encoding_format == "base64" else list[float]
    data = [
        {"object": "embedding", "index": number, "embedding": encode(vector)} for number, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def in_base64(vector: list[float]) -> str:
    """Numbers in the format that OpenAI's client requests by default."""
    return base64.b64encode(np.array(vector, dtype="<f4").tobytes()).decode()


def describe(service: Service, name: str) -> dict[str, Any]:
    """A run in the format of OpenAI's list of models."""
    weights = Path(service.runs[name].folder) / "model.safetensors"
    created = int(weights.stat().st_mtime) if weights.is_file() else 0
    return {"id": name, "object": "model", "created": created, "owned_by": "clearhead"}
