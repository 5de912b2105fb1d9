"""`clearhead serve`: a server as its own process, and how it stops."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from command_line import Verb, start
from patience import PATIENCE


def post(address: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def address_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(rb"http://[0-9.:]+/", line):
            return found[0].decode()
    raise AssertionError("the server has stopped")


@pytest.mark.slow
def test_sigterm_answers_what_was_accepted_and_exits_with_0(runs: dict[str, Path]) -> None:
    with start("serve", runs["language"], runs["translation"], "--port", 0, stderr=subprocess.PIPE) as process:
        address = address_of(process)
        assert len(post(f"{address}translate", {"text": "a cat"})["translations"]) == 1
        answers: list[Any] = []
        asked = {"prompt": ["a cat"] * 32, "tokens": 500, "temperature": 100.0}
        thread = threading.Thread(target=lambda: answers.append(post(f"{address}generate", asked)))
        thread.start()
        idle = b'clearhead_running{model="language"} 0'
        while not answers and idle in urllib.request.urlopen(f"{address}metrics").read():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        thread.join(PATIENCE)
        assert len(answers[0]["texts"]) == 32
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_ctrl_c_stops_the_server(runs: dict[str, Path]) -> None:
    with start("serve", runs["similarity"], "--port", 0, stderr=subprocess.PIPE) as process:
        assert len(post(f"{address_of(process)}embed", {"text": "a cat"})["vectors"]) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def open_half(address: str, sent: bytes) -> socket.socket:
    """A connection on which a part of a request was sent."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    connection = socket.create_connection((host, int(port)), PATIENCE)
    connection.sendall(sent)
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("verb", [["serve"], ["explore", "--no-open"]], ids=["serve", "explore"])
def test_few_descriptors_and_many_half_open_connections(runs: dict[str, Path], tmp_path: Path, verb: list[str]) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as written,
        start(*verb, runs["language"], "--port", 0, files=64, stderr=written) as process,
        ExitStack() as stack,
    ):
        while not (found := re.search(r"http://[0-9.:]+/", log.read_text())):
            assert process.poll() is None
            time.sleep(0.05)
        for number in range(300):
            stack.enter_context(open_half(found[0], b"GET / HTTP/1.1\r\nHost: 127"))
            if number % 100 == 99:
                with urllib.request.urlopen(found[0], timeout=PATIENCE) as page:
                    assert b"</html>" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert len(log.read_text().splitlines()) <= 2


@pytest.mark.slow
def test_slow_clients_do_not_keep_the_server_from_stopping(runs: dict[str, Path]) -> None:
    with start("serve", runs["language"], "--port", 0, "--client-seconds", 1, stderr=subprocess.PIPE) as process:
        address = address_of(process)
        asked = json.dumps({"model": "language", "prompt": ["a cat"] * 8, "max_tokens": 500, "logprobs": 20}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {address[7:-1]}\r\nContent-Type: application/json\r\n".encode()
        body = b"Content-Length: %d\r\n\r\n" % len(asked)
        with (
            open_half(address, b"GET / HTTP/1.1\r\nHost: 127"),
            open_half(address, head + body + asked[:9]),
            open_half(address, head + body + asked),  # never read
        ):
            idle = b'clearhead_running{model="language"} 0'
            while idle in urllib.request.urlopen(f"{address}metrics").read():
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_what_cannot_be_served_is_said(verb: Verb, runs: dict[str, Path]) -> None:
    twice = verb("serve", runs["language"], runs["language"])
    assert (twice[2], "rename one" in twice[1]) == (1, True)
    port = verb("serve", runs["language"], "--port", "70000")
    assert (port[2], "--port 70000" in port[1]) == (1, True)
    host = verb("serve", runs["language"], "--host", "nowhere.invalid", "--port", "0")
    assert host[1].startswith("clearhead: --host nowhere.invalid --port 0: ")
    assert host[1].endswith("; choose another --host or --port (0: any)")
    for option, value in (("--queue", "0"), ("--client-seconds", "-1"), ("--seconds", "inf"), ("--seconds", "nan")):
        refused = verb("serve", runs["language"], option, value)
        assert refused[1:] == (f"clearhead: {option} {value}: must be above 0, and finite", 1)
