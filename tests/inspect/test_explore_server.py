"""The explorer's server answers its own page only, and refuses with a sentence what it cannot answer."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest

from clearhead.config import UserError
from clearhead.inspect.web.explorer import LONGEST_TEXT, Explorer
from clearhead.inspect.web.server import LARGEST_REQUEST, RequestHandler, Server, finite, page_files
from command_line import Verb
from explored_runs import WEIGHTS, begin, folder_of
from patience import PATIENCE
from tiny_runs import TEXT


def send(
    server: Server, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request as a browser, or somebody else, could send it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    headers = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    if body is not None:
        headers.setdefault("Content-Length", str(len(body)))
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


def test_numbers_that_overflow_are_refused_with_a_remedy(server: Server) -> None:
    changes = json.dumps({"encoder.blocks.0.feed_forward": [{"kind": "scale", "value": 1e38}]})
    status, _, body = send(server, f"/api/trace?{urlencode({'run': '0', 'text': TEXT, 'changes': changes})}")
    assert (status, "smaller factor" in json.loads(body)["error"]) == (400, True)
    assert finite({"a": [1.0, math.inf, math.nan]}) == {"a": [1.0, None, None]}


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("nothing", {}, "there is no request 'nothing'"),
        ("trace", {"run": "0"}, "missing a required argument: 'text'"),
        ("trace", {"run": "0", "text": "a", "more": "b"}, "unexpected keyword argument 'more'"),
        ("trace", {"run": "1", "text": "a"}, "run = '1': expected 0 to 0"),
        ("trace", {"run": "-1", "text": "a"}, "run = '-1'"),
        ("trace", {"run": "0", "text": "a" * (LONGEST_TEXT + 1)}, "text has 20,001 characters"),
        ("trace", {"run": "0", "text": "x" * LONGEST_TEXT}, "tokens; at most 2,000 can be shown"),
        ("trace", {"run": "0", "text": "a", "target": "x" * LONGEST_TEXT}, "tokens; at most 2,000 can be shown"),
        ("trace", {"run": "0", "text": "a", "snapshot": "../0"}, "snapshot '../0': of this run there are [0, 7, 20]"),
        ("trace", {"run": "0", "text": "a", "changes": "{"}, "expected JSON"),
        ("trace", {"run": "0", "text": "a", "changes": "[" * 9999}, "expected JSON"),
        ("trace", {"run": "0", "text": "a", "changes": '{"encoder.sums": []}'}, "no 'encoder.sums'"),
        ("tensor", {"trace": "0", "name": WEIGHTS}, "trace '0' is not known any more"),
        ("lengths", {"trace": "0", "stack": "encoder"}, "trace '0' is not known any more"),
        ("waves", {"run": "0", "stack": "middle", "count": "8"}, "stack 'middle'"),
        ("waves", {"run": "0", "stack": "encoder", "count": "99999"}, "count = '99999'"),
        ("merges", {"run": "0", "side": "left", "text": "a"}, "side 'left'"),
    ],
)
def test_what_cannot_be_answered_gets_a_sentence(
    explorer: Explorer, server: Server, path: str, query: dict[str, str], message: str
) -> None:
    status, _, body = send(server, f"/api/{path}?{urlencode(query)}")
    assert status == 400
    assert message in json.loads(body)["error"]


@pytest.mark.parametrize("request_of", ["cell", "story", "tensor"])
def test_an_unknown_tensor_is_named(explorer: Explorer, server: Server, request_of: str) -> None:
    query = {"trace": begin(explorer)["id"], "name": "encoder.nothing"} | (
        {"index": "0"} if request_of == "cell" else {}
    )
    status, _, body = send(server, f"/api/{request_of}?{urlencode(query)}")
    assert (status, "'encoder.nothing'" in json.loads(body)["error"]) == (400, True)


def test_the_page_is_served_with_a_strict_policy(server: Server) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/main.js", "text/javascript"),
        ("/style.css", "text/css"),
        ("/views.css", "text/css"),
    ):
        status, headers, body = send(server, path)
        assert status == 200
        assert headers["Content-Type"].startswith(kind)
        assert headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert body == page_files()[path.removeprefix("/")].read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/views/../../server.py",
        "/%2e%2e/server.py",
        "//etc/passwd",
        "http://[",
        "/run.toml",
        "/views",
        "/views/",
    ],
)
def test_nothing_but_the_page_can_be_read(server: Server, path: str) -> None:
    assert send(server, path)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_sites_cannot_ask_by_way_of_a_browser(server: Server, headers: dict[str, str]) -> None:
    for path in ("/", "/api/run"):
        status, _, body = send(server, path, **headers)
        assert status == 403
        assert "own page" in json.loads(body)["error"]
    assert send(server, "/api/close", "POST", b"[]", **headers)[0] == 403


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/api/close", b"[]", {}, 200),
        ("/api/close", b'["no such trace"]', {}, 200),
        ("/api/close", b"{}", {}, 400),
        ("/api/close", b"[1]", {}, 400),
        ("/api/close", b"\xff", {}, 400),
        ("/api/close", b"[" * 60_000, {}, 400),
        ("/api/run", b"[]", {}, 400),
        ("/api/close", b"", {"Content_Length": str(LARGEST_REQUEST + 1)}, 413),
        ("/api/close", b"", {"Content_Length": "many"}, 413),
        ("/api/close", b"", {"Content_Length": "1" * 5000}, 413),
    ],
)
def test_only_a_list_of_traces_can_be_sent(
    server: Server, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert send(server, path, "POST", body, **headers)[0] == status


HALF = b"GET / HTTP/1.1\r\nHost: 127"
HALF_BODY = b"POST /api/close HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 100\r\n\r\n["


@pytest.mark.parametrize("drop", [b"", b" "], ids=["silent", "in drops"])
@pytest.mark.parametrize("sent", [b"", HALF, HALF_BODY], ids=["nothing", "headers", "body"])
def test_a_request_that_does_not_arrive_is_not_awaited(
    server: Server, monkeypatch: pytest.MonkeyPatch, sent: bytes, drop: bytes
) -> None:
    monkeypatch.setattr(RequestHandler, "timeout", 1)
    with socket.create_connection(("127.0.0.1", server.server_port), PATIENCE) as connection:
        connection.sendall(sent.replace(b"%d", b"%d" % server.server_port))
        connection.settimeout(0.1)
        with suppress(ConnectionError):
            for _ in range(10 * PATIENCE):
                connection.sendall(drop)
                with suppress(TimeoutError):
                    if not connection.recv(1000):
                        return
            pytest.fail("the connection is open")


def test_half_open_connections_make_room_for_others(server: Server) -> None:
    server.room = 5
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), PATIENCE)).sendall(HALF)
        assert send(server, "/")[0] == 200
        assert len(server.since) <= 5


def test_a_client_is_refused_if_all_connections_are_busy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.room = 2
    begun, released = threading.Semaphore(0), threading.Event()

    def answer(*_: object) -> dict[str, str]:
        begun.release()
        released.wait(PATIENCE)
        return {}

    monkeypatch.setattr(server.explorer, "answer", answer)
    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(send, server, "/api/run") for _ in range(2)]
        assert all(begun.acquire(timeout=PATIENCE) for _ in busy)
        status, headers, _ = send(server, "/")
        assert (status, headers["Retry-After"]) == (503, "1")
        released.set()
        assert [each.result(PATIENCE)[0] for each in busy] == [200, 200]


def test_an_endless_address_is_refused(server: Server) -> None:
    assert send(server, "/api/run?" + "a" * (LARGEST_REQUEST + 1))[0] == 414


def test_other_methods_do_not_exist(server: Server) -> None:
    assert send(server, "/", "PUT", b"")[0] == 501


def test_closing_over_http_frees_the_trace(explorer: Explorer, server: Server) -> None:
    number = begin(explorer)["id"]
    assert any(key == number for key, _ in explorer.passes.parts)
    send(server, "/api/close", "POST", json.dumps([number]).encode())
    assert all(key != number for key, _ in explorer.passes.parts)


def test_a_taken_port_is_named(explorer: Explorer, server: Server) -> None:
    with pytest.raises(
        UserError, match=f"--port {server.server_port}: Address already in use; choose another --host or --port"
    ):
        Server(explorer, port=server.server_port)


def test_a_port_that_cannot_be_is_refused(explorer: Explorer) -> None:
    with pytest.raises(UserError, match="--port 80000: expected 0 to 65535"):
        Server(explorer, port=80_000)


def test_only_runs_of_one_kind_are_compared() -> None:
    with pytest.raises(UserError, match="only runs of one family and head can be compared, not "):
        Explorer([folder_of("translator"), folder_of("writer")])


def test_the_verb_refuses_what_is_no_run(tmp_path: Path, verb: Verb) -> None:
    _, error, code = verb("explore", tmp_path, "--no-open")
    assert code == 1
    assert "is not a run" in error


def test_a_public_explorer_is_reached_by_addresses_not_by_names_of_others(server: Server) -> None:
    with Server(server.explorer, "0.0.0.0") as public:
        assert public.gate.accepts("10.0.0.7:8642", None, None)
        assert not public.gate.accepts("rebound.example:8642", None, None)
