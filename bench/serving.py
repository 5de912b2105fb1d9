"""Load test of `clearhead serve` on this machine: many clients with prompts and texts of mixed lengths.

    python bench/serving.py [--clients 64] [--seconds 60] [--layers 4] [--width 256] [--peer 1] [--kill 1]

First one client sends its requests one after the other, then all clients do so at the same time, and last all of them
to the same model in `transformers` behind FastAPI (`--peer 1`). Answers are compared with what the library writes for
the same prompt and seed. At the end the server is killed under load (`--kill 1`) and started again: clients must see
errors, and none may hang. Weights are random, which does not change the cost.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from measure import options

from clearhead.bench.material import random_texts, write_random_run
from clearhead.config import ModelConfig
from clearhead.decode.generate import generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.exchange.targets import export_run
from clearhead.runs import Run, open_run

CHOICE = SamplingSettings(0.8, top_k=8)  # few tokens, so that rounding seldom decides between two of them
CHECKED = 100  # answers that are compared with the library's, of each phase
VOCABULARY = 4000


@dataclass(frozen=True)
class Asked:
    """A request, its answer and its time."""

    prompt: str
    tokens: int
    seed: int
    text: str
    written: int
    seconds: float


def start(*command: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server; return it, and its host and port."""
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://[0-9.:]+/", line):
            return process, urlsplit(found[0]).netloc
    sys.exit("the server did not start")


def serve(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start `clearhead serve`."""
    return start("-m", "clearhead", "serve", str(folder), "--port", "0", "--device", "cpu")


class Load:
    """Clients that send requests until a time; each waits for an answer before it sends the next request."""

    def __init__(self, netloc: str, prompts: list[str], seconds: float) -> None:
        self.netloc = netloc
        self.prompts = prompts
        self.until = time.monotonic() + seconds
        self.answers: list[Asked] = []
        self.errors: list[str] = []

    def run(self, clients: int) -> None:
        """Let so many clients send requests at the same time."""
        threads = [threading.Thread(target=self.client, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def client(self, number: int) -> None:
        """One client."""
        dice = random.Random(number)
        connection = http.client.HTTPConnection(self.netloc, timeout=300)
        while time.monotonic() < self.until:
            body = {
                "prompt": dice.choice(self.prompts),
                "tokens": dice.choice((8, 32, 128)),
                "seed": dice.getrandbits(32),
                "top_k": CHOICE.top_k,
                "top_p": CHOICE.top_p,
            }
            began = time.monotonic()
            try:
                connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                found = json.loads(answer.read())
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(type(error).__name__)
                return
            if answer.status != 200:
                self.errors.append(f"{answer.status}: {found['error']['message']}")
                continue
            [text] = found["texts"]
            taken = time.monotonic() - began
            asked = Asked(
                str(body["prompt"]), int(body["tokens"]), int(body["seed"]), text["text"], text["tokens"], taken
            )
            self.answers.append(asked)

    def wrong(self, run: Run) -> int:
        """How many of a sample of answers differ from those of the library."""
        checked = random.Random(0).sample(self.answers, min(CHECKED, len(self.answers)))
        return sum(each.text != generate(run, [each.prompt], each.tokens, CHOICE, each.seed)[0] for each in checked)

    def report(self, name: str, seconds: float, run: Run | None) -> float:
        """Print a line about this load, and whether the answers are those of a run; return tokens per second."""
        times = sorted(each.seconds for each in self.answers)
        speed = sum(each.written for each in self.answers) / seconds
        middle, slowest = times[len(times) // 2], times[len(times) * 99 // 100]
        line = f"{name:>26}: {len(times):6,} answers, {speed:8,.0f} tokens/s, p50 {middle:.3f} s, p99 {slowest:.3f} s"
        line += f", {len(self.errors)} errors"
        if run is not None:
            line += f", {self.wrong(run)} of {min(CHECKED, len(times))} checked differ from the library's"
        print(line)
        return speed


def kill_under_load(folder: Path, prompts: list[str], clients: int) -> None:
    """Kill a server under load and start another one."""
    process, netloc = serve(folder)
    load = Load(netloc, prompts, 30)
    threading.Timer(2, process.kill).start()
    began = time.monotonic()
    load.run(clients)
    ended = time.monotonic() - began
    print(f"killed after 2 s: all {clients} clients ended after {ended:.1f} s with {dict.fromkeys(load.errors)}")
    process, netloc = serve(folder)
    again = Load(netloc, prompts, 1)
    again.run(clients)
    print(f"started again: {len(again.answers):,} answers, {len(again.errors)} errors")
    process.terminate()
    process.wait(60)


def measure(name: str, netloc: str, prompts: list[str], clients: int, seconds: float, run: Run | None) -> float:
    """Let clients send requests for so many seconds; return tokens per second."""
    load = Load(netloc, prompts, seconds)
    began = time.monotonic()
    load.run(clients)
    return load.report(name, time.monotonic() - began, run)


def peer_speed(folder: Path, prompts: list[str], clients: int, seconds: float) -> float:
    """Tokens per second of the same model in `transformers`."""
    exported = folder.parent / "exported"
    export_run(folder, exported, "huggingface")
    process, netloc = start(str(Path(__file__).parent / "serving_peer.py"), str(exported))
    speed = measure(f"{clients} clients, transformers", netloc, prompts, clients, seconds, None)
    process.terminate()
    process.wait(120)
    return speed


def llama(layers: int, width: int) -> ModelConfig:
    """A model that `transformers` has, too."""
    return ModelConfig(
        family="decoder-only",
        vocab=VOCABULARY,
        layers=layers,
        d_model=width,
        d_ff=4 * width,
        heads=max(1, width // 64),
        position="rotary",
        norm="rms",
        norm_order="pre",
        activation="swiglu",
        bias=False,
        scale_embedding=False,
    )


def main() -> None:
    arguments = options(__doc__, clients=64, seconds=60, layers=4, width=256, peer=1, kill=1)
    many = arguments.clients
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_random_run(Path(temporary) / "random", llama(arguments.layers, arguments.width))
        prompts = [text for words in (4, 16, 64) for text in random_texts(folder, 20, words)]
        run = open_run(folder)
        process, netloc = serve(folder)
        slow = measure("one client", netloc, prompts, 1, arguments.seconds, run)
        fast = measure(f"{many} clients", netloc, prompts, many, arguments.seconds, run)
        print(f"{fast / slow:.1f} times the tokens per second of one client")
        process.terminate()
        print(f"SIGTERM: exit code {process.wait(120)}")
        if arguments.peer:
            print(f"{fast / peer_speed(folder, prompts, many, arguments.seconds):.1f} times those of transformers")
        if arguments.kill:
            kill_under_load(folder, prompts, many)


if __name__ == "__main__":
    main()
