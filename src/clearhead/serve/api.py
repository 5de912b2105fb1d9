"""The API of the server: one endpoint for each verb."""

# Annotations are evaluated here, unlike elsewhere: FastAPI reads them.

import asyncio
import math
from collections.abc import AsyncIterator, Generator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from clearhead.config import require
from clearhead.decode.embed import classify_steps, embed_steps
from clearhead.decode.generate import document_prompt
from clearhead.decode.limits import check_prompt_length, check_tokens
from clearhead.decode.translate import SearchSettings, first_and_later, join_spans, split_texts, translate_spans
from clearhead.inspect.names import choose
from clearhead.inspect.trace import trace
from clearhead.runs import Run
from clearhead.serve.answers import STREAMED, collect, event_stream, pieces_of, while_connected
from clearhead.serve.engine import Engine
from clearhead.serve.rows import Row
from clearhead.serve.schemas import GenerateRequest, TextsRequest, TraceRequest, TranslateRequest, as_list
from clearhead.serve.service import Service, Text
from clearhead.serve.tickets import Call, at_once

Json = dict[str, Any]
MOST_NUMBERS = 1_000_000  # of the tensors that one trace returns
MOST_TRACED = 512  # tokens of a text that is traced: attention weights take memory and time for each pair of tokens


def routes(service: Service) -> APIRouter:
    """The endpoints of the verbs."""
    router = APIRouter(tags=["verbs"])

    @router.post("/translate", summary="Translate or summarise texts by beam search")
    async def translate_texts(request: Request, asked: TranslateRequest) -> Json:
        return await while_connected(request, translation(service, asked))

    @router.post("/generate", summary="Continue prompts; with stream, token by token", responses=STREAMED)
    async def generate_texts(request: Request, asked: GenerateRequest) -> Response:
        name, texts = begin(service, asked)
        if asked.stream:
            return event_stream(generation_events(texts))
        return JSONResponse(await while_connected(request, generation(name, texts)))

    @router.post("/classify", summary="The class of each text, with all probabilities")
    async def classify_texts(request: Request, asked: TextsRequest) -> Json:
        return await while_connected(request, encoding(service, "classify", asked))

    @router.post("/embed", summary="A vector of length 1 for each text")
    async def embed_texts(request: Request, asked: TextsRequest) -> Json:
        return await while_connected(request, encoding(service, "embed", asked))

    @router.post("/trace", summary="The intermediate tensors of a forward pass: all names and shapes, some values")
    async def trace_text(request: Request, asked: TraceRequest) -> Json:
        return await while_connected(request, tracing(service, asked))

    return router


async def translation(service: Service, asked: TranslateRequest) -> Json:
    """Translate the texts of a request, sentence by sentence; sentences with the same settings share a batch."""
    name, engine = service.find(asked.model, "translate")
    texts = as_list(asked.text)
    service.check_texts(texts, asked.prefix)
    how = SearchSettings(
        asked.beam, asked.length_penalty, asked.nbest, prefix=asked.prefix, longest=service.limits.tokens
    )
    spans = await asyncio.to_thread(split_texts, engine.run, texts)
    first, later = first_and_later(spans)
    if how.prefix:
        of_first = await service.call(engine, translation_call(engine.run, how), first)
        of_later = await service.call(engine, translation_call(engine.run, replace(how, prefix="")), later)
    else:
        found = await service.call(engine, translation_call(engine.run, how), first + later)
        of_first, of_later = found[: len(first)], found[len(first) :]
    best = join_spans(spans, of_first, of_later)
    return {"model": name, "translations": [[asdict(each) for each in some] for some in best]}


def translation_call(run: Run, how: SearchSettings) -> Call:
    """The search for translations of sentences."""
    return Call(how, lambda inputs: translate_spans(run, inputs, how), rows=how.width)


def begin(service: Service, asked: GenerateRequest) -> tuple[str, list[Text]]:
    """Submit all prompts; each has its own seed, as on the command line."""
    name, engine = service.find(asked.model, "generate")
    choice = asked.choice()
    rows = [
        Row(ids, asked.tokens, choice, None if asked.seed is None else asked.seed + number)
        for number, ids in enumerate(encode_prompts(service, engine, as_list(asked.prompt), asked.tokens))
    ]
    return name, service.write(engine, rows, asked.stop)


def encode_prompts(service: Service, engine: Engine, prompts: list[str], tokens: int) -> list[list[int]]:
    """Encode prompts; refuse those that are too long, or that leave no space for `tokens` new ones."""
    service.check_texts(prompts)
    encoded = [document_prompt(engine.run, prompt) for prompt in prompts]
    for ids in encoded:
        check_tokens(engine.run.recipe.model, len(ids), tokens)
        check_prompt_length(engine.run.recipe, len(ids))
    return encoded


async def generation(name: str, texts: list[Text]) -> Json:
    """The answer when all texts are complete."""
    results = [
        {"text": "".join(piece.text for piece in pieces), "finish_reason": pieces[-1].reason, "tokens": text.written}
        for text, pieces in zip(texts, await collect(texts), strict=True)
    ]
    return {"model": name, "texts": results}


async def generation_events(texts: list[Text]) -> AsyncIterator[Json]:
    """The texts as they are generated: {"index", "text"}; the last event of each also has "finish_reason"."""
    async for number, piece in pieces_of(texts):
        if piece.reason is not None:
            yield {"index": number, "text": piece.text, "finish_reason": piece.reason}
        elif piece.text:
            yield {"index": number, "text": piece.text}


async def encoding(service: Service, verb: str, asked: TextsRequest) -> Json:
    """The classes or vectors of the texts."""
    name, engine = service.find(asked.model, verb)
    texts = as_list(asked.text)
    service.check_texts(texts)
    if verb == "classify":
        classes = await service.call(engine, Call(verb, partial(classify_steps, engine.run)), texts)
        return {"model": name, "classes": [asdict(each) for each in classes]}
    return {"model": name, "vectors": await vectors_of(service, engine, texts)}


async def vectors_of(service: Service, engine: Engine, texts: list[str]) -> list[list[float]]:
    """The vectors of texts as numbers."""

    def begin(inputs: list[str]) -> Generator[None, None, list[list[float]]]:
        vectors = yield from embed_steps(engine.run, inputs)
        numbers: list[list[float]] = vectors.tolist()
        return numbers

    return await service.call(engine, Call("embed", begin), texts)


async def tracing(service: Service, asked: TraceRequest) -> Json:
    """Names and shapes of all tensors of a forward pass, and the values of the requested ones."""
    name, engine = service.find(asked.model)
    service.check_texts([asked.text], asked.target or "")

    def call(_: list[Any]) -> list[Json]:
        check_traced(engine.run, asked)
        with torch.inference_mode(False), trace(engine.run, asked.text, asked.target) as traced:
            shapes = {each: list(traced[each].shape) for each in traced}
            values = {}
            if asked.names:
                wanted = choose(traced.names(), asked.names)
                numbers = sum(math.prod(shapes[each]) for each in wanted)
                require(
                    numbers <= MOST_NUMBERS,
                    f"names: these tensors have {numbers:,} numbers, an answer at most {MOST_NUMBERS:,}; name fewer",
                )
                values = {each: {"axes": traced.axes(each), "values": traced[each].tolist()} for each in wanted}
            return [{"tokens": traced.tokens, "target": traced.target_text, "shapes": shapes, "tensors": values}]

    [found] = await service.call(engine, Call(object(), at_once(call)), [None])
    return {"model": name, **found}


def check_traced(run: Run, asked: TraceRequest) -> None:
    """Refuse a text or a target that is too long for a trace."""
    sides = {
        "text": run.tokenizers.source.encode(asked.text),
        "target": run.tokenizers.target.encode(asked.target or ""),
    }
    for name, ids in sides.items():
        require(len(ids) <= MOST_TRACED, f"{name} has {len(ids):,} tokens, a trace at most {MOST_TRACED:,}; shorten it")
