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

from clearhead.config import TokenizerConfig
from clearhead.decode.chat import answer
from clearhead.decode.embed import embed
from clearhead.decode.generate import document_prompt, generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.runs import Run
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizers, train_tokenizer
from patience import PATIENCE
from served_runs import served
from tiny_runs import SENTENCES, tiny_run, tokenizers

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
    assert all("usage" in chunk.model_fields_set and chunk.usage is None for chunk in chunks[:-1])


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


def words_run() -> Run:
    """A run of which a token's text is known only when the next one is."""
    torch.manual_seed(3)
    both = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab=60), SENTENCES * 20, progress=False)
    run = tiny_run("decoder-only", position="rotary", wider=both.vocab - tokenizers().target.vocab)
    assert not both.byte_level
    return replace(run, folder=Path("runs/words"), tokenizers=Tokenizers(both, both))


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_has_its_tokens_at_their_offsets(named_runs: Runs, stream: bool) -> None:
    runs = [named_runs["writer"], words_run()]
    with served(runs) as address, OpenAI(base_url=f"{address}/v1", api_key="none", timeout=PATIENCE) as ai:
        for run in runs:
            asked: Any = {"model": run.folder.name, "prompt": PROMPT, "max_tokens": 30, "seed": 1, "stream": stream}
            found = ai.completions.create(**asked, logprobs=2, stop="never", extra_body={"top_k": 40})
            choices = [chunk.choices[0] for chunk in found] if stream else [found.choices[0]]
            text = "".join(choice.text for choice in choices)
            parts = [choice.logprobs for choice in choices if choice.logprobs]
            tokens = [token for part in parts for token in part.tokens]
            offsets = [offset for part in parts for offset in part.text_offset]
            assert len(tokens) == len(offsets) > 10
            assert all(len(top) >= 2 and token in top for part in parts for token, top in pairs(part))
            whole = [
                (token, offset) for token, offset in zip(tokens, offsets, strict=True) if not re.search(r"\\x|<", token)
            ]
            assert len(whole) > 5
            for token, offset in whole:
                assert text[offset:].lstrip().startswith(token.removeprefix("##").lstrip()), (text, offset, token)


def pairs(logprobs: Any) -> Any:
    return zip(logprobs.tokens, logprobs.top_logprobs, strict=True)


def test_the_bytes_of_the_tokens_are_those_of_the_text(ai: OpenAI) -> None:
    asked: Any = {"messages": [{"role": "user", "content": "é"}], "max_tokens": 40, "seed": 2, "logprobs": True}
    choice = ai.chat.completions.create(model="talker", **asked).choices[0]
    written = bytes(byte for token in choice.logprobs.content for byte in token.bytes)
    special = re.compile(r"<[a-z]+>")
    assert special.sub("", written.decode(errors="replace")) == choice.message.content
    assert any("\\x" in token.token for token in choice.logprobs.content)


def test_top_logprobs_alone_are_refused(ai: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="top_logprobs needs logprobs"):
        ai.chat.completions.create(model="talker", messages=[{"role": "user", "content": "a"}], top_logprobs=2)


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
    with pytest.raises(openai.BadRequestError, match="assistant's turn"):
        ai.chat.completions.create(
            model="talker", messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        )
    with pytest.raises(openai.AuthenticationError):
        OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0).models.list()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"guided_json": {}}, "guided_json"),
        ({"temprature": 0.1}, "temprature"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"top_k": -1}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"stream_options": {"include_everything": True}}, "stream_options.include_everything"),
        ({"messages": [{"role": "user", "content": "a", "name": "Ann"}]}, "messages.0.name"),
        ({"messages": []}, "messages"),
    ],
)
def test_a_field_that_is_not_supported_is_refused_by_its_name(ai: OpenAI, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ai.chat.completions.create(
            model="talker", messages=[{"role": "user", "content": "a"}], max_tokens=2, extra_body=asked
        )
    assert (refused.value.param, refused.value.type) == (field, "invalid_request_error")
    assert field in refused.value.message


def test_no_address_ignores_a_field(ai: OpenAI) -> None:
    more: Any = {"extra_body": {"guided_json": {}}}
    for create in (
        lambda: ai.completions.create(model="writer", prompt="a", **more),
        lambda: ai.embeddings.create(model="embedder", input="a", **more),
        lambda: ai.embeddings.create(model="embedder", input="a", dimensions=2),
    ):
        with pytest.raises(openai.BadRequestError, match="is not supported; leave it out"):
            create()


def test_fields_that_change_nothing_are_accepted(ai: OpenAI) -> None:
    asked: Any = {"model": "talker", "messages": [{"role": "user", "content": "a"}], "max_tokens": 5, "temperature": 0}
    plain = ai.chat.completions.create(**asked).choices[0].message
    harmless: Any = {"user": "me", "metadata": {"a": "b"}, "tools": [], "tool_choice": "auto", "presence_penalty": 0}
    nothing = {"seed": None, "stop": None, "logit_bias": None, "top_p": None, "stream": None, "n": None, "top_k": None}
    assert ai.chat.completions.create(**asked, **harmless, extra_body=nothing).choices[0].message == plain
    asked["messages"] += [plain.model_dump(), {"role": "user", "content": "b"}]  # as programs send an answer back
    assert ai.chat.completions.create(**asked).choices[0].message.role == "assistant"


@pytest.mark.parametrize("more", [{"top_k": 3}, {"min_p": 0.2}, {"repetition_penalty": 1.5}, {"top_k": 1, "min_p": 1}])
def test_further_rules_of_sampling_are_those_of_the_library(
    ai: OpenAI, named_runs: Runs, more: dict[str, float]
) -> None:
    found = ai.completions.create(model="writer", prompt=PROMPT, max_tokens=20, seed=5, extra_body=more)
    sampling = SamplingSettings(**more)
    assert [found.choices[0].text] == generate(named_runs["writer"], [PROMPT], 20, sampling, 5)


def test_a_greedy_text_has_a_repetition_penalty_too(ai: OpenAI, named_runs: Runs) -> None:
    asked: Any = {"model": "writer", "prompt": PROMPT, "max_tokens": 20, "temperature": 0}
    found = ai.completions.create(**asked, extra_body={"repetition_penalty": 5.0}).choices[0].text
    greedy = SamplingSettings(top_k=1, repetition_penalty=5.0)
    assert [found] == generate(named_runs["writer"], [PROMPT], 20, greedy, 0)
    assert [found] != generate(named_runs["writer"], [PROMPT], 20)


def test_a_top_p_of_0_leaves_the_most_likely_token(ai: OpenAI, named_runs: Runs) -> None:
    found = ai.completions.create(model="writer", prompt=PROMPT, max_tokens=20, top_p=0)
    assert [found.choices[0].text] == generate(named_runs["writer"], [PROMPT], 20)


def test_many_clients_get_their_own_texts(ai: OpenAI, named_runs: Runs) -> None:
    prompts = [f"{PROMPT} {'and a cat ' * (number % 5)}" for number in range(24)]

    def ask(number: int) -> str:
        found = ai.completions.create(model="writer", prompt=prompts[number], max_tokens=5 + number, seed=number)
        return found.choices[0].text

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, range(24)))
    run = named_runs["writer"]
    assert found == [generate(run, [prompts[n]], 5 + n, SamplingSettings(), n)[0] for n in range(24)]


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
