"""OpenAI's API, used with OpenAI's own client."""

from __future__ import annotations

import json
import math
import re
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("openai", reason="openai is not installed: pip install 'clearhead[dev]'")

import openai
from openai import OpenAI

from clearhead.decode.chat import answer
from clearhead.decode.embed import embed
from clearhead.decode.generate import document_prompt, generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.runs import Run
from clearhead.text.dialogue import Dialogue, Message
from patience import PATIENCE
from served_runs import served
from tiny_runs import tiny_run

PROMPT = "the red car"
Runs = dict[str, Run]


@pytest.fixture(scope="module")
def address(named_runs: Runs) -> Iterator[str]:
    with served(list(named_runs.values()), key="s3cret") as address:
        yield address


@pytest.fixture(scope="module")
def ai(address: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{address}/v1", api_key="s3cret", max_retries=0, timeout=PATIENCE) as client:
        yield client


def test_models_are_the_runs(ai: OpenAI, named_runs: Runs) -> None:
    assert [model.id for model in ai.models.list()] == list(named_runs)
    assert ai.models.retrieve("writer").owned_by == "clearhead"
    with pytest.raises(openai.NotFoundError):
        ai.models.retrieve("nobody")


def test_completions_are_those_of_the_library(ai: OpenAI, named_runs: Runs) -> None:
    run = named_runs["writer"]
    prompts = [PROMPT, "a cat"]
    greedy = ai.completions.create(model="writer", prompt=prompts, max_tokens=20, temperature=0)
    assert [choice.text for choice in greedy.choices] == generate(run, prompts, 20)
    sampled = ai.completions.create(model="writer", prompt=PROMPT, max_tokens=20, seed=5, top_p=0.9, n=3)
    expected = [generate(run, [PROMPT], 20, SamplingSettings(top_p=0.9), 5 + number)[0] for number in range(3)]
    assert [choice.text for choice in sampled.choices] == expected
    assert sampled.usage is not None
    assert sampled.usage.prompt_tokens == len(document_prompt(run, PROMPT))
    assert sampled.usage.completion_tokens <= 60
    assert all(choice.finish_reason in ("stop", "length") for choice in sampled.choices)


def test_a_stream_joins_to_the_same_and_ends_with_usage(ai: OpenAI, named_runs: Runs) -> None:
    options = {"include_usage": True}
    chunks = list(
        ai.completions.create(model="writer", prompt=PROMPT, max_tokens=20, seed=5, stream=True, stream_options=options)  # type: ignore[call-overload]
    )
    text = "".join(chunk.choices[0].text for chunk in chunks[:-1])
    assert [text] == generate(named_runs["writer"], [PROMPT], 20, SamplingSettings(), 5)
    assert chunks[-2].choices[0].finish_reason in ("stop", "length")
    assert chunks[-1].usage.total_tokens > chunks[-1].usage.prompt_tokens


def test_stop_sequences_end_a_text_before_them(ai: OpenAI, named_runs: Runs) -> None:
    [whole] = generate(named_runs["writer"], [PROMPT], 20)
    stop = whole[4:7]
    for stream in (False, True):
        found = ai.completions.create(
            model="writer", prompt=PROMPT, max_tokens=20, temperature=0, stop=stop, stream=stream
        )
        chunks: list[Any] = list(found) if stream else [found]
        assert "".join(chunk.choices[0].text for chunk in chunks) == whole[: whole.index(stop)]
        assert chunks[-1].choices[0].finish_reason == "stop"


def test_log_probabilities_of_completions(ai: OpenAI) -> None:
    found = ai.completions.create(model="writer", prompt=PROMPT, max_tokens=5, temperature=0, logprobs=3)
    logprobs = found.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert logprobs.token_logprobs is not None
    assert logprobs.top_logprobs is not None
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs)
    assert logprobs.token_logprobs[0] == pytest.approx(max(logprobs.top_logprobs[0].values()))
    assert all(value < 0 for value in logprobs.token_logprobs)


def test_chat_answers_as_the_library_does(ai: OpenAI, named_runs: Runs) -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": PROMPT}]
    dialogue = Dialogue((Message("system", "be brief"), Message("user", PROMPT)))
    expected = "".join(answer(named_runs["talker"], dialogue, 12, SamplingSettings(0.5), 3))
    found = ai.chat.completions.create(
        model="talker",
        messages=messages,
        max_tokens=12,
        temperature=0.5,
        seed=3,
        logprobs=True,
        top_logprobs=2,
    )
    assert found.choices[0].message.content == expected
    assert found.choices[0].message.role == "assistant"
    content = found.choices[0].logprobs.content
    assert len(content) == found.usage.completion_tokens
    assert all(len(token.top_logprobs) == 2 and math.isfinite(token.logprob) for token in content)
    chunks: Any = list(
        ai.chat.completions.create(
            model="talker",
            messages=messages,
            max_tokens=12,
            temperature=0.5,
            seed=3,
            stream=True,
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == expected


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_embeddings_are_those_of_the_library(ai: OpenAI, named_runs: Runs, form: str | None) -> None:
    texts = [PROMPT, "a cat"]
    options = {"encoding_format": form} if form else {}
    found = ai.embeddings.create(model="embedder", input=texts, **options)
    if form != "base64":
        vectors = torch.tensor([each.embedding for each in found.data])
        assert torch.allclose(vectors, embed(named_runs["embedder"], texts), atol=1e-5)
    assert found.usage.prompt_tokens > 0


def test_errors_are_those_that_the_client_knows(ai: OpenAI, address: str) -> None:
    with pytest.raises(openai.NotFoundError, match="known: "):
        ai.completions.create(model="nobody", prompt="a")
    with pytest.raises(openai.BadRequestError, match="cannot generate"):
        ai.completions.create(model="embedder", prompt="a")
    with pytest.raises(openai.UnprocessableEntityError, match="tools is not supported"):
        ai.chat.completions.create(model="talker", messages=[], tools=[{"type": "function"}])
    with pytest.raises(openai.BadRequestError, match="assistant's turn"):
        ai.chat.completions.create(
            model="talker", messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        )
    with pytest.raises(openai.AuthenticationError):
        OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0).models.list()


def test_many_clients_get_their_own_texts(ai: OpenAI, named_runs: Runs) -> None:
    prompts = [f"{PROMPT} {'and a cat ' * (number % 5)}" for number in range(24)]

    def ask(number: int) -> str:
        found = ai.completions.create(model="writer", prompt=prompts[number], max_tokens=5 + number, seed=number)
        return found.choices[0].text

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, range(24)))
    run = named_runs["writer"]
    assert found == [generate(run, [prompts[n]], 5 + n, SamplingSettings(), n)[0] for n in range(24)]


@pytest.fixture(scope="module")
def endless_run() -> Run:
    """A run whose greedy text never ends: <end> is never the most likely token."""
    torch.manual_seed(3)
    run = tiny_run("decoder-only", position="rotary")
    run.model.get_parameter("head.project.weight").data[run.tokenizers.target.end] = 0
    return replace(run, folder=Path("runs/endless"))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_place(endless_run: Run, stream: bool) -> None:
    with served([endless_run], batch=1, tokens=10**6) as address:
        asked = {"model": "endless", "prompt": "a", "max_tokens": 10**5, "temperature": 0, "stream": stream}
        client = HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
        client.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
        while not running(address):
            time.sleep(0.02)
        client.close()
        while running(address):
            time.sleep(0.02)


def running(address: str) -> int:
    """How many requests are being computed."""
    metrics = urllib.request.urlopen(f"{address}/metrics").read().decode()
    found = re.search(r"clearhead_running\{.*\} (\d+)", metrics)
    assert found
    return int(found[1])
