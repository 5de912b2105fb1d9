"""Slow, silent, broken and too many clients: they end in time, and others are answered."""

from __future__ import annotations

import json
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'clearhead[serve]'")

from clearhead.runs import Run
from clearhead.serve.connections import Seldom
from patience import PATIENCE
from served_runs import served

HEADERS = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF = b"GET /health HTTP/1.1\r\nHost: 127"
HALF_BODY = b"POST /embed HTTP/1.1\r\n" + HEADERS + b"Content-Length: 100\r\n\r\n{"
ENDLESS_BODY = b"POST /embed HTTP/1.1\r\n" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def address(named_runs: dict[str, Run]) -> Iterator[str]:
    with served([named_runs["embedder"]]) as address:
        yield address


@pytest.fixture(scope="module")
def strict(named_runs: dict[str, Run]) -> Iterator[str]:
    """The address of a server that waits for its clients for a second."""
    with served([named_runs["embedder"]], client_seconds=1) as address:
        yield address


def connect(address: str, sent: bytes = b"") -> socket.socket:
    """A connection on which a part of a request was sent; Host is completed with the port."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), PATIENCE)
    connection.sendall(sent.replace(b"Host: 127.0.0.1\r", f"Host: 127.0.0.1:{port}\r".encode()))
    return connection


def rest(connection: socket.socket) -> bytes:
    """All that a server sends until it closes the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def ask(address: str, sent: bytes) -> bytes:
    """The whole answer to what is sent, up to the end of the connection."""
    with connect(address, sent) as connection:
        return rest(connection)


def healthy(address: str) -> bool:
    with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE) as answer:
        return bool(answer.status == 200)


def error_of(answer: bytes) -> tuple[int, str]:
    """The status and the message of an error."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


@pytest.mark.parametrize("sent", [HALF, HALF_BODY, ENDLESS_BODY], ids=["headers", "body", "chunks"])
def test_a_half_sent_request_ends_with_408(strict: str, sent: bytes) -> None:
    assert error_of(ask(strict, sent)) == (408, "the request did not arrive in time")


@pytest.mark.parametrize(
    ("sent", "drop"),
    [(HALF, b"a"), (HALF_BODY, b" "), (ENDLESS_BODY, b"1\r\n \r\n")],
    ids=["headers", "body", "chunks"],
)
def test_a_request_that_arrives_in_drops_ends_as_well(strict: str, sent: bytes, drop: bytes) -> None:
    with connect(strict, sent) as connection:
        connection.settimeout(0.1)
        answer = b""
        for _ in range(10 * PATIENCE):
            connection.sendall(drop)
            with suppress(TimeoutError):
                answer = connection.recv(65536)
                break
        answer += rest(connection)
    assert error_of(answer)[0] == 408


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\n" + HEADERS + b"\r\n"], ids=["new", "after an answer"])
def test_an_idle_connection_is_closed_without_a_word(strict: str, sent: bytes) -> None:
    answer = ask(strict, sent)
    assert answer.count(b"HTTP/1.1 ") == (1 if sent else 0)
    assert b"408" not in answer


def test_half_open_connections_make_room_for_others(named_runs: dict[str, Run]) -> None:
    with served([named_runs["embedder"]], connections=20) as address, ExitStack() as stack:
        opened = [stack.enter_context(connect(address, HALF)) for _ in range(300)]
        assert healthy(address)
        for connection in opened[:200]:
            answer = rest(connection)
            assert b"\r\nretry-after: 1\r\n" in answer
            assert error_of(answer) == (503, "too many connections are open; try again later")


def endless(address: str) -> socket.socket:
    """A stream that does not end, and of which the beginning has been read."""
    body = json.dumps({"prompt": "a", "tokens": 10**5, "greedy": True, "stream": True}).encode()
    head = b"POST /generate HTTP/1.1\r\n" + HEADERS + b"Content-Length: %d\r\n\r\n" % len(body)
    connection = connect(address, head + body)
    connection.recv(100)
    return connection


def test_a_client_is_refused_if_all_connections_are_busy(endless_run: Run) -> None:
    with served([endless_run], connections=3, tokens=10**6) as address:
        with ExitStack() as stack:
            busy = [stack.enter_context(endless(address)) for _ in range(3)]
            answer = ask(address, b"GET /health HTTP/1.1\r\n" + HEADERS + b"\r\n")
            assert b"\r\nretry-after: 1\r\n" in answer
            assert error_of(answer)[0] == 503
            assert all(connection.recv(100) for connection in busy)
        wait_until(lambda: b"200 OK" in ask(address, b"GET /health HTTP/1.0\r\n" + HEADERS + b"\r\n"))


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_client_that_does_not_read_its_stream_is_cut_off(endless_run: Run) -> None:
    with served([endless_run], batch=1, tokens=10**6, seconds=10**4, client_seconds=1) as address:
        asked = {"model": "endless", "prompt": "a", "max_tokens": 10**5, "temperature": 0, "stream": True}
        body = json.dumps({**asked, "logprobs": 20}).encode()
        head = b"POST /v1/completions HTTP/1.1\r\n" + HEADERS + b"Content-Length: %d\r\n\r\n" % len(body)
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, port = address.removeprefix("http://").split(":")
            silent.connect((host, int(port)))
            silent.sendall((head + body).replace(b"127.0.0.1\r", f"127.0.0.1:{port}\r".encode()))
            wait_until(lambda: running(address) == 1)
            wait_until(lambda: running(address) == 0)


def running(address: str) -> int:
    with urllib.request.urlopen(f"{address}/metrics", timeout=PATIENCE) as answer:
        [line] = [line for line in answer.read().decode().splitlines() if line.startswith("clearhead_running{")]
    return int(line.split()[-1])


LAST = b"Connection: close\r\n"
GET = b"GET /health HTTP/1.1\r\n"
POST = b"POST /embed HTTP/1.1\r\n" + HEADERS


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /health HTTP/1.0\r\n" + HEADERS + b"\r\n", 200),
        (b"GET /health HTTP/1.0\r\n\r\n", 403),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (GET + b"\r\n", 400),
        (GET + HEADERS + HEADERS + b"\r\n", 400),
        (GET + HEADERS + b"no colon\r\n\r\n", 400),
        (GET + b"Long: " + b"a" * 200_000, 431),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (POST + b"Content-Length: -2\r\n\r\n{}", 400),
        (POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", 400),
        (POST + LAST + b"Content-Length: 99999999\r\n\r\n{}", 413),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", 400),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ],
)
def test_what_is_not_http_is_answered_in_json(address: str, sent: bytes, status: int) -> None:
    answer = ask(address, sent)
    assert int(answer.split()[1]) == status
    assert b"application/json" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])


def test_an_answer_to_head_has_no_body(address: str) -> None:
    answer = ask(address, b"HEAD /health HTTP/1.1\r\n" + HEADERS + LAST + b"\r\n")
    assert (answer.split()[1], answer.endswith(b"\r\n\r\n")) == (b"200", True)


def test_requests_of_one_connection_are_answered_in_turn(address: str) -> None:
    one = b"GET /v1/models HTTP/1.1\r\n" + HEADERS + b"\r\n"
    body = b'{"text": "a"}'
    two = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    answer = ask(address, (one + two) * 10 + GET + HEADERS + LAST + b"\r\n")
    assert answer.count(b"HTTP/1.1 200") == 21
    assert answer.index(b'"owned_by"') < answer.index(b'"vectors"')


def test_what_repeats_is_logged_once_with_a_count() -> None:
    seldom = Seldom()

    def printed(text: str, when: float) -> str:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, text, (), None)
        record.created = when
        return record.getMessage() if seldom.filter(record) else ""

    assert printed("broken", 1000) == "broken"
    assert [printed("broken", 1000 + second) for second in range(5)] == [""] * 5
    assert printed("other", 1005) == "other"
    assert printed("broken", 1061) == "broken (5 more of these in the last 61 s)"
    assert printed("broken", 1122) == "broken"
