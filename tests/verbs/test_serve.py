"""`clearhead serve`: a server as its own process, and how it stops."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
import urllib.request
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


def test_what_cannot_be_served_is_said(verb: Verb, runs: dict[str, Path]) -> None:
    twice = verb("serve", runs["language"], runs["language"])
    assert (twice[2], "rename one" in twice[1]) == (1, True)
    port = verb("serve", runs["language"], "--port", "70000")
    assert (port[2], "--port 70000" in port[1]) == (1, True)
    host = verb("serve", runs["language"], "--host", "nowhere.invalid", "--port", "0")
    assert host[1].startswith("clearhead: --host nowhere.invalid --port 0: ")
    assert host[1].endswith("; choose another --host or --port (0: any)")
    queue = verb("serve", runs["language"], "--queue", "0")
    assert queue[1:] == ("clearhead: --queue 0: must be above 0", 1)
