"""`clearhead generate` says what the library says, as it is generated."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import clearhead
from clearhead.decode.sampling import SamplingSettings
from clearhead.terminal.pipes import on_one_line
from command_line import Verb, start
from saved_runs import save_endless


def test_generate_says_what_the_library_says(verb: Verb, runs: dict[str, Path]) -> None:
    run, loaded = runs["language"], clearhead.load(runs["language"])
    choice = SamplingSettings(0.8, top_p=0.95)
    whole = "the red" + loaded.generate("the red", 20, choice, seed=4)
    assert verb("generate", run, "the red", "--tokens", 20, "--seed", 4)[0] == whole.split("\n")
    [line], _, _ = verb("generate", run, "the red", "--tokens", 20, "--seed", 4, "--json")
    assert json.loads(line) == {"prompt": "the red", "text": whole.removeprefix("the red")}
    lines, _, _ = verb("generate", run, "--tokens", 9, "--greedy", stdin="the red\na cat\n")
    prompts = ["the red", "a cat"]
    expected = [a + b for a, b in zip(prompts, loaded.generate(prompts, tokens=9), strict=True)]
    assert lines == [on_one_line(line) for line in expected]


def test_ctrl_c_stops_a_text_in_the_middle(tmp_path: Path) -> None:
    process = start(
        *("generate", save_endless(tmp_path), "the red", "--greedy", "--tokens", 10**6),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.read(30).startswith(b"the red")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert (errors, process.returncode) == (b"", 130)


def test_numbers_that_are_too_large_are_refused(verb: Verb, runs: dict[str, Path]) -> None:
    for option in ("seed", "tokens"):
        lines, notes, code = verb("generate", runs["language"], "a", f"--{option}", 10**20)
        assert (f"{option} = 100000000000000000000: must be" in notes, code, lines) == (True, 1, [])
        assert verb("chat", runs["chat"], f"--{option}", 10**20, stdin="a\n")[1].count("must be") == (option == "seed")


def test_a_prompt_that_would_take_minutes_is_refused(verb: Verb, runs: dict[str, Path]) -> None:
    _, notes, code = verb("generate", runs["language"], stdin="the red car " * 10_000)
    assert ("times as long as the texts that the model was trained on" in notes, code) == (True, 1)
