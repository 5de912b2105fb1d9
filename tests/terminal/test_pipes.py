"""Lines in, lines out: whatever arrives on stdin, and whatever becomes of stdout."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import clearhead
from command_line import TRAINED, Verb, read_until, start


def test_nothing_in_nothing_out(verb: Verb, runs: dict[str, Path]) -> None:
    assert verb("translate", TRAINED) == ([], "", 0)
    assert verb("classify", runs["classification"]) == ([], "", 0)
    assert verb("generate", runs["language"]) == ([], "", 0)
    assert verb("chat", runs["chat"]) == ([], "", 0)
    assert verb("embed", runs["similarity"], "--json") == ([], "", 0)
    for name in ("classify", "embed"):
        run = runs["classification" if name == "classify" else "similarity"]
        assert verb(name, run, "a", "  ", "--json")[1:] == (
            "clearhead: text 2 is empty: there is nothing to read; leave it out",
            1,
        )
    given = "a\n" * 10_000 + "\n"  # more than is read at once
    assert "clearhead: line 10,001 is empty" in verb("classify", runs["classification"], stdin=given)[1]


def test_what_is_not_utf8_is_refused_with_its_place(verb: Verb) -> None:
    _, notes, code = verb("translate", TRAINED, stdin="à\n".encode() * 3 + b"caf\xe9\n")
    assert (notes, code) == (
        "clearhead: line 4 is not UTF-8 (byte 0xe9 at 4); convert it first: iconv -f CP1252 -t UTF-8",
        1,
    )
    for encoding in ("UTF-16", "UTF-16LE", "UTF-16BE"):
        assert verb("translate", TRAINED, stdin="a\n".encode(encoding))[1].endswith(f"iconv -f {encoding} -t UTF-8")
    _, notes, code = verb("translate", TRAINED, "a", os.fsdecode(b"caf\xe9"))
    assert ("text 2 is not UTF-8 (byte 0xe9 at 4)" in notes, code) == (True, 1)
    assert verb("generate", TRAINED, os.fsdecode(b"\xff"))[2] == 1


def test_a_byte_order_mark_is_not_a_character_of_the_first_line(verb: Verb) -> None:
    lines, _, _ = verb("translate", TRAINED, "--json", stdin=b"\xef\xbb\xbfa cat\na dog\n")
    assert [json.loads(line)["source"] for line in lines] == ["a cat", "a dog"]


def test_results_are_utf8_wherever_we_are(runs: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "clearhead", "generate", str(runs["language"]), "é😀", "--tokens", "1"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, timeout=100)
    assert (done.stdout.decode()[:2], done.stderr, done.returncode) == ("é😀", b"", 0)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("the red car is fast\n" * 4000)
    with (tmp_path / "lines").open("rb") as given:
        process = start("translate", TRAINED, "--beam", 1, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline().decode().strip() == clearhead.load(TRAINED).translate(
            "the red car is fast", beam=1
        )
        process.stdout.close()
        assert process.stderr
        assert (process.stderr.read(), process.wait(100)) == (b"", 0)


def test_lines_are_counted_on_a_terminal_and_answered_as_they_come() -> None:
    terminal, inside = pty.openpty()
    process = start("translate", TRAINED, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=inside)
    os.close(inside)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"a cat runs\n")
    process.stdin.flush()
    assert process.stdout.readline()  # before there is a second line
    assert b"1 lines" in read_until(terminal, b"lines")
    process.stdin.write(b"the dog\nthe car\n")
    process.stdin.close()
    assert len(process.stdout.readlines()) == 2
    assert b"3 lines\r\n" in read_until(terminal, b"\r\n")
    assert process.wait(100) == 0
