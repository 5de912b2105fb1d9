"""The API of the server: every answer is what the library computes; what cannot be answered is an error in JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.decode.embed import classify, embed
from clearhead.decode.generate import generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.translate import SearchSettings, translate
from clearhead.inspect.trace import trace
from clearhead.runs import Run
from served_runs import TestClient, client_of

TEXTS = ["the red car is fast", "a cat runs"]
Runs = dict[str, Run]


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(text: str) -> list[dict[str, Any]]:
    """The objects of a stream of server-sent events."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_translations_are_those_of_the_library(client: TestClient, named_runs: Runs) -> None:
    found = post(client, "/translate", text=TEXTS, nbest=2)
    expected = translate(named_runs["translator"], TEXTS, SearchSettings(nbest=2))
    assert found["model"] == "translator"
    assert [[each["text"] for each in best] for best in found["translations"]] == [
        [e.text for e in b] for b in expected
    ]
    assert found["translations"][0][0]["score"] == pytest.approx(expected[0][0].score, abs=1e-4)
    [[one]] = post(client, "/translate", text=TEXTS[0], beam=1)["translations"]
    assert one["text"] == translate(named_runs["translator"], TEXTS[:1], SearchSettings(beam=1))[0][0].text


@pytest.mark.parametrize("prefix", ["", "la"])
def test_texts_of_several_sentences_are_joined_as_the_library_joins_them(named_runs: Runs, prefix: str) -> None:
    run = replace(named_runs["translator"], one_sentence=True)
    texts = ["The red car is fast. A cat runs.\nThe dog!", " ", "A cat. " * 9]
    with client_of([run], batch=8) as client:
        found = post(client, "/translate", text=texts, prefix=prefix, beam=2)["translations"]
    assert [best["text"] for [best] in found] == [
        best.text for [best] in translate(run, texts, SearchSettings(beam=2, prefix=prefix))
    ]


def test_continuations_are_those_of_the_library(client: TestClient, named_runs: Runs) -> None:
    run = named_runs["writer"]
    found = post(client, "/generate", prompt=TEXTS, tokens=20, greedy=True)
    assert [each["text"] for each in found["texts"]] == generate(run, TEXTS, 20)
    found = post(client, "/generate", prompt=TEXTS, tokens=20, seed=7)
    assert [each["text"] for each in found["texts"]] == generate(run, TEXTS, 20, SamplingSettings(0.8, top_p=0.95), 7)
    assert {each["finish_reason"] for each in found["texts"]} <= {"stop", "length"}


def test_a_stream_of_several_texts_joins_to_the_same(client: TestClient, named_runs: Runs) -> None:
    answer = client.post("/generate", json={"prompt": TEXTS, "tokens": 20, "seed": 7, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    texts = ["", ""]
    for event in events(answer.text):
        texts[event["index"]] += event["text"]
    assert texts == generate(named_runs["writer"], TEXTS, 20, SamplingSettings(0.8, top_p=0.95), 7)


def test_a_text_ends_before_a_stop_sequence(client: TestClient, named_runs: Runs) -> None:
    [whole] = generate(named_runs["writer"], TEXTS[:1], 20)
    stop = whole[5:8]
    [found] = post(client, "/generate", prompt=TEXTS[0], tokens=20, greedy=True, stop=[stop, "not in it"])["texts"]
    assert found["text"] == whole[: whole.index(stop)]
    assert found["finish_reason"] == "stop"


def test_classes_and_vectors_are_those_of_the_library(client: TestClient, named_runs: Runs) -> None:
    found = post(client, "/classify", text=TEXTS)["classes"]
    expected = classify(named_runs["classifier"], TEXTS)
    assert [each["label"] for each in found] == [each.label for each in expected]
    assert found[0]["probabilities"] == pytest.approx(expected[0].probabilities, abs=1e-5)
    vectors = torch.tensor(post(client, "/embed", text=TEXTS)["vectors"])
    assert torch.allclose(vectors, embed(named_runs["embedder"], TEXTS), atol=1e-5)


@pytest.mark.parametrize("name", ["translator", "writer", "classifier"])
def test_traces_have_the_numbers_of_the_model(client: TestClient, named_runs: Runs, name: str) -> None:
    found = post(client, "/trace", model=name, text=TEXTS[0], names=["*blocks.0.attention.weights"])
    expected = trace(named_runs[name], TEXTS[0])
    assert list(found["shapes"]) == expected.names()
    for each, tensor in found["tensors"].items():
        assert torch.allclose(torch.tensor(tensor["values"]), expected[each], atol=1e-5)
    assert found["tensors"]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/generate", {"model": "nobody"}, 404, "known: translator"),
        ("/generate", {"model": "translator"}, 400, "cannot generate; runs that can: writer, talker"),
        ("/generate", {"model": "writer", "tokens": 10**6}, 400, "writes at most"),
        ("/generate", {"model": "talker", "tokens": 2000}, 400, "learned positions"),
        ("/generate", {"tokens": 0}, 422, "tokens: "),
        ("/generate", {"prompt": ["a"] * 129}, 400, "129 texts"),
        ("/translate", {"text": "a" * 100_001}, 400, "characters"),
        ("/translate", {"text": []}, 400, "0 texts"),
        ("/translate", {"txt": "a"}, 422, "txt is not supported; leave it out"),
        ("/generate", {"greedy": True, "top_k": 5, "seed": 1}, 400, "leave out greedy, or top_k"),
        ("/classify", {"text": ""}, 400, "empty"),
        ("/trace", {"text": "a", "names": ["nothing"]}, 400, "has no 'nothing'"),
        ("/trace", {"text": "a " * 600}, 400, "a trace at most 512; shorten it"),
        ("/trace", {"text": "a", "target": "b " * 600}, 400, "target has"),
        ("/nowhere", {}, 404, "Not Found"),
    ],
)
def test_errors_say_what_is_wrong(client: TestClient, path: str, body: Any, status: int, message: str) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, message in answer.json()["error"]["message"]) == (status, True), answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 10**5, b'{"prompt": "\\ud800"}', b'{"tokens": 1e999}', b"\xff"])
def test_bodies_that_are_no_request_are_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/generate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "Traceback" not in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"prompt": "\xff"}', "application/json", "can't decode byte 0xff"),
        (b"[" * 10**5, "application/json", "recursion"),
        (b'{"tokens": ' + b"9" * 5000 + b"}", "application/json", "Exceeds the limit"),
        (b'{"prompt": "a"}', "application/x-www-form-urlencoded", "Content-Type: application/json"),
        (b"[]", "application/json", "must be a JSON object"),
        (b'{"prompt": "a", "' + b"x" * 10**6 + b'": 1}', "application/json", "x" * 500),
        (b'{"prompt": "a", "model": "' + b"x" * 10**6 + b'"}', "application/json", "x" * 500),
    ],
)
def test_a_body_that_is_no_request_is_told_why_in_a_few_words(
    client: TestClient, body: bytes, kind: str, message: str
) -> None:
    answer = client.post("/generate", content=body, headers={"Content-Type": kind})
    assert message in answer.json()["error"]["message"]
    assert len(answer.content) < 3000


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/v1/models"])
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    assert client.head(path).status_code == client.get(path).status_code == 200


def test_a_body_that_is_not_json_is_told_where(client: TestClient) -> None:
    answer = client.post("/generate", content=b'{"tokens": }', headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert (error["message"], error["param"]) == ("body: not JSON, at character 11: Expecting value", None)


def test_a_full_queue_answers_429_and_says_when_to_retry(named_runs: Runs) -> None:
    with client_of([named_runs["writer"]], queue=1, batch=1) as client:
        answer = client.post("/generate", json={"prompt": ["a"] * 100, "tokens": 50})
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert client.post("/generate", json={"prompt": "a", "tokens": 5}).status_code == 200


def test_probes_metrics_and_schema(client: TestClient) -> None:
    client.post("/generate", json={"prompt": "a", "tokens": 5})
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json()["runs"][0] == {"name": "translator", "task": "translation", "verb": "translate"}
    metrics = client.get("/metrics").text
    assert 'clearhead_requests_total{path="/generate",status="200"}' in metrics
    assert 'clearhead_tokens_written_total{model="writer"}' in metrics
    assert 'clearhead_request_seconds_bucket{path="/generate",le="+Inf"}' in metrics
    assert {"/translate", "/generate", "/classify", "/embed", "/trace"} <= set(
        client.get("/openapi.json").json()["paths"]
    )


def test_an_error_of_ours_is_an_answer_without_a_traceback(
    named_runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("clearhead.serve.api.embed_steps", lambda *_: 1 / 0)
    with client_of([named_runs["embedder"]]) as client:
        answer = client.post("/embed", json={"text": "a"})
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the request failed; the server's log has the error"
    assert "ZeroDivisionError" in capsys.readouterr().err
