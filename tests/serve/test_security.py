"""Who may use a server, and how much they may send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'clearhead[serve]'")

from clearhead.inspect.web.origin import Gate
from clearhead.runs import Run
from clearhead.serve.guard import LARGEST_BODY
from served_runs import PORT, TestClient, client_of

HERE = f"127.0.0.1:{PORT}"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": f"localhost:{PORT}"}, 200),
        ({"Origin": f"http://{HERE}"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": f"evil.example:{PORT}"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "["}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_only_own_pages_and_programs_are_answered(client: TestClient, headers: dict[str, str], status: int) -> None:
    answer = client.get("/health", headers=headers)
    assert answer.status_code == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("192.168.1.5:8000", True),
        ("[::1]:8000", True),
        ("localhost:8000", True),
        ("model.example", True),
        ("MODEL.example:443", True),
        ("rebound.example:8000", False),
        ("model.example.evil.example", False),
        ("", False),
    ],
)
def test_a_public_server_is_reached_by_addresses_and_its_names(host: str, accepted: bool) -> None:
    assert Gate("0.0.0.0", 8000, ["model.example"]).accepts(host, None, None) is accepted


def test_a_server_of_this_machine_behind_a_proxy_knows_its_name_only() -> None:
    gate = Gate("127.0.0.1", 8000, ["model.example"])
    assert gate.accepts("model.example", "https://model.example", "same-origin")
    assert not gate.accepts("192.168.1.5:8000", None, None)


@pytest.fixture(scope="module")
def locked(named_runs: dict[str, Run]) -> Iterator[TestClient]:
    with client_of([named_runs["embedder"]], key="s3cret") as client:
        yield client


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearer é"]
)
def test_without_the_key_nothing_is_answered(locked: TestClient, value: str) -> None:
    for path in ("/embed", "/metrics", "/nowhere"):
        answer = locked.post(path, json={"text": "a"}, headers={"Authorization": value.encode()})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_with_the_key_all_is_answered(locked: TestClient) -> None:
    assert locked.post("/embed", json={"text": "a"}, headers={"Authorization": "Bearer s3cret"}).status_code == 200
    assert locked.get("/health").status_code == 200


def test_large_bodies_are_refused_with_and_without_their_length(client: TestClient) -> None:
    body = b'{"text": "' + b"a" * LARGEST_BODY + b'"}'
    assert client.post("/embed", content=body).status_code == 413

    def parts() -> Iterator[bytes]:
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    answer = client.post("/embed", content=parts(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, "at most" in answer.json()["error"]["message"]) == (413, True)
    assert client.post("/embed", content=b"{}", headers={"Content-Length": "many"}).status_code in (400, 413)
