"""`clearhead classify` says what the library says."""

from __future__ import annotations

import json
from pathlib import Path

import clearhead
from command_line import Verb


def test_classify_says_what_the_library_says(verb: Verb, runs: dict[str, Path]) -> None:
    texts = ["the red car", "a cat runs"]
    found = clearhead.load(runs["classification"]).classify(texts)
    lines, _, _ = verb("classify", runs["classification"], *texts)
    assert lines == [f"{each.label}\t{each.probabilities[each.label]:.4f}" for each in found]
    lines, _, _ = verb("classify", runs["classification"], "--json", stdin="the red car\na cat runs\n")
    assert [json.loads(line) for line in lines] == [
        {"text": text, "label": each.label, "probabilities": each.probabilities}
        for text, each in zip(texts, found, strict=True)
    ]


def test_100_000_characters_are_read_in_windows_or_refused(verb: Verb, runs: dict[str, Path]) -> None:
    [line], _, code = verb("classify", runs["classification"], stdin="x" * 100_000)
    assert (line.split("\t")[0] in ("bad", "good", "so so"), code) == (True, 0)
    _, notes, code = verb("generate", runs["chat"], "x" * 100_000, "--tokens", 5)
    assert ("are more than model.max_length = 64" in notes, code) == (True, 1)
