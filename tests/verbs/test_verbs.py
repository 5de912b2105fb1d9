"""The verbs that use a run, on the command line: what the library says, a line for a line; and whatever goes wrong."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import clearhead
from clearhead.cli import app, main
from clearhead.decode.sampling import Choice
from clearhead.decode.translate import Searching
from clearhead.terminal.pipes import on_one_line
from clearhead.text.tokenizer import Tokenizers
from command_line import TRAINED, Verb, read_until, start
from saved_runs import save
from tiny_runs import tiny_run, tokenizers
from trained_tokenizers import OURS

# --- the command line is the library ----------------------------------------------------------------------------------


def test_translate_says_what_the_library_says(verb: Verb) -> None:
    loaded, texts = clearhead.load(TRAINED), ["the red car is fast", "", "a cat runs", "   "]
    expected = loaded.translate(texts)
    assert verb("translate", TRAINED, *texts) == (expected, "", 0)
    assert verb("translate", TRAINED, stdin="\r\n".join(texts)) == (expected, "", 0)
    assert verb("translate", TRAINED, texts[0], "--beam", 1, "--prefix", "la") == (
        [loaded.translate(texts[0], beam=1, prefix="la")],
        "",
        0,
    )


def test_translations_come_with_their_scores(verb: Verb) -> None:
    best = clearhead.load(TRAINED).nbest("a cat runs", Searching(nbest=3))
    lines, _, _ = verb("translate", TRAINED, "a cat runs", "--nbest", 3)
    assert lines == [f"{each.score:.4f}\t{each.text}" for each in best]
    [line], _, _ = verb("translate", TRAINED, "a cat runs", "--nbest", 3, "--json")
    read = json.loads(line)
    assert read["source"] == "a cat runs"
    assert [each["text"] for each in read["translations"]] == [each.text for each in best]
    assert read["translations"][0] == pytest.approx(vars(best[0]))


def test_draws_are_repeated_by_their_seed_and_every_line_has_its_own(
    verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("translate", TRAINED, "--sample", "--top-k", 20, "--temperature", 1.5, "--seed", 3)
    lines, _, _ = verb(*options, stdin="a cat runs\n" * 6)
    assert len(set(lines)) > 2
    monkeypatch.setattr("clearhead.terminal.pipes.BATCH_BYTES", 16)  # the lines come in three parts
    assert verb(*options, stdin="a cat runs\n" * 6)[0] == lines


def test_generate_says_what_the_library_says(verb: Verb, runs: dict[str, Path]) -> None:
    run, loaded = runs["language"], clearhead.load(runs["language"])
    choice = Choice(0.8, top_p=0.95)
    whole = "the red" + loaded.generate("the red", 20, choice, seed=4)
    assert verb("generate", run, "the red", "--tokens", 20, "--seed", 4)[0] == whole.split("\n")
    [line], _, _ = verb("generate", run, "the red", "--tokens", 20, "--seed", 4, "--json")
    assert json.loads(line) == {"prompt": "the red", "text": whole.removeprefix("the red")}
    lines, _, _ = verb("generate", run, "--tokens", 9, "--greedy", stdin="the red\na cat\n")
    prompts = ["the red", "a cat"]
    expected = [a + b for a, b in zip(prompts, loaded.generate(prompts, tokens=9), strict=True)]
    assert lines == [on_one_line(line) for line in expected]


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


def test_embed_writes_what_numpy_reads_or_json(
    verb: Verb, runs: dict[str, Path], capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, run = ["the red car", "a cat runs", "the dog"], runs["similarity"]
    vectors = clearhead.load(run).embed(texts)
    monkeypatch.setattr(sys, "argv", ["clearhead", "embed", str(run), *texts])
    main()
    np.testing.assert_allclose(np.load(io.BytesIO(capsysbinary.readouterr().out)), vectors.numpy())
    lines, _, _ = verb("embed", run, "--json", stdin="\n".join(texts))
    read = [json.loads(line) for line in lines]
    assert [each["text"] for each in read] == texts
    torch.testing.assert_close(torch.tensor([each["vector"] for each in read]), vectors)


def test_similar_shows_the_closest_first(verb: Verb, runs: dict[str, Path]) -> None:
    texts, run = ["the red car", "a cat runs", "the dog"], runs["similarity"]
    lines, _, _ = verb("embed", run, "--similar", "--json", *texts)
    vectors = clearhead.load(run).embed(texts)
    for row, line in enumerate(map(json.loads, lines)):
        cosines = [other["cosine"] for other in line["similar"]]
        assert cosines == sorted(cosines, reverse=True)
        assert {other["text"] for other in line["similar"]} == {*texts} - {texts[row]}
        expected = float(vectors[row] @ vectors[texts.index(line["similar"][0]["text"])])
        assert cosines[0] == pytest.approx(expected, abs=1e-5)
    shown, _, _ = verb("embed", run, "--similar", *texts)
    assert [line for line in shown if not line.startswith("  ")] == texts
    assert verb("embed", run, "--similar", "alone")[1:] == (
        "clearhead: --similar compares texts with each other: give two or more",
        1,
    )


# --- chat -------------------------------------------------------------------------------------------------------------


def test_a_piped_conversation_remembers_and_takes_commands(verb: Verb, runs: dict[str, Path], tmp_path: Path) -> None:
    run, file = runs["chat"], tmp_path / "talk.json"
    talk = f"""the dog

a cat
/reset
the dog
/system red
/help
/sav
/save {file}
the dog
/save {file}
/save {tmp_path / "no" / "where"}
/save
/quit
never said"""
    lines, notes, code = verb("chat", run, "--greedy", "--tokens", 8, "--system", "fast", stdin=talk)
    first, second, again, other = lines
    assert (first, code) == (again, 0)
    assert first != second
    loaded = clearhead.load(run)
    system, asked = {"role": "system", "content": "fast"}, {"role": "user", "content": "the dog"}
    said = "".join(loaded.chat([system, asked], tokens=8))
    assert first == on_one_line(said)
    later = [system, asked, {"role": "assistant", "content": said}, {"role": "user", "content": "a cat"}]
    assert second == on_one_line("".join(loaded.chat(later, tokens=8)))
    saved = json.loads(file.read_text())
    assert [message["role"] for message in saved] == ["system", "user", "assistant"]
    assert [saved[0]["content"], on_one_line(saved[2]["content"])] == ["red", other]
    for words in ("(a new conversation)", "/save FILE", "/sav: no such command; did you mean 'save'?", "cannot write"):
        assert words in notes
    assert "(1 messages in" in notes


def test_a_conversation_says_what_it_forgets_and_goes_on_after_a_message_that_is_too_long(
    verb: Verb, runs: dict[str, Path]
) -> None:
    talk = "the red car is fast and the dog sees it\n" * 6 + "too long " * 40 + "\na cat"
    lines, notes, code = verb("chat", runs["chat"], "--greedy", "--tokens", 20, stdin=talk)
    assert (len(lines), code) == (8, 0)
    assert "the conversation is too long: the first" in notes
    assert "the last message alone has" in notes
    assert lines[6] == ""
    assert lines[7]


# --- whatever people give it ------------------------------------------------------------------------------------------


def test_nothing_in_nothing_out(verb: Verb, runs: dict[str, Path]) -> None:
    assert verb("translate", TRAINED) == ([], "", 0)
    assert verb("classify", runs["classification"]) == ([], "", 0)
    assert verb("generate", runs["language"]) == ([], "", 0)
    assert verb("chat", runs["chat"]) == ([], "", 0)
    assert verb("embed", runs["similarity"])[1:] == (
        "clearhead: there is no text to embed; give some, or lines on stdin",
        1,
    )
    for name in ("classify", "embed"):
        run = runs["classification" if name == "classify" else "similarity"]
        assert verb(name, run, "a", "  ", "--json")[1:] == (
            "clearhead: text 2 is empty: there is nothing to read; leave it out",
            1,
        )
    given = "a\n" * 10_000 + "\n"  # more than is read at once
    assert "clearhead: line 10,001 is empty" in verb("classify", runs["classification"], stdin=given)[1]


@pytest.mark.parametrize("text", ["the red car is fast. " * 4762, "x" * 100_000], ids=["sentences", "one word"])
def test_100_000_characters_are_translated(verb: Verb, text: str) -> None:
    [line], notes, code = verb("translate", TRAINED, "--beam", 1, stdin=text)
    assert len(line) > 1000
    assert code == 0
    assert notes == "" or "reached the length limit" in notes


def test_100_000_characters_are_read_in_windows_or_refused(verb: Verb, runs: dict[str, Path]) -> None:
    [line], _, code = verb("classify", runs["classification"], stdin="x" * 100_000)
    assert (line.split("\t")[0] in ("bad", "good", "so so"), code) == (True, 0)
    _, notes, code = verb("generate", runs["chat"], "x" * 100_000, "--tokens", 5)
    assert ("are more than model.max_length = 64" in notes, code) == (True, 1)


def test_characters_that_a_tokenizer_does_not_know(verb: Verb, tmp_path: Path) -> None:
    words = OURS["words"]
    run = tiny_run(wider=words.vocab - tokenizers().target.vocab)
    folder = save(replace(run, tokenizers=Tokenizers(words, words)), tmp_path)
    lines, _, code = verb("translate", folder, "日本語 zzz \x00", "😀", "\u200b")
    assert (len(lines), code) == (3, 0)


def test_what_is_not_utf8_is_refused_with_its_place(verb: Verb) -> None:
    _, notes, code = verb("translate", TRAINED, stdin="à\n".encode() * 3 + b"caf\xe9\n")
    assert (notes, code) == (
        "clearhead: line 4 is not UTF-8 (byte 0xe9 at 4); convert it first: iconv -f latin1 -t utf8",
        1,
    )
    _, notes, code = verb("translate", TRAINED, "a", os.fsdecode(b"caf\xe9"))
    assert ("text 2 is not UTF-8 (byte 0xe9 at 4)" in notes, code) == (True, 1)
    assert verb("generate", TRAINED, os.fsdecode(b"\xff"))[2] == 1


def test_results_are_utf8_wherever_we_are(runs: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "clearhead", "generate", str(runs["language"]), "é😀", "--tokens", "1"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, timeout=100)
    assert (done.stdout.decode()[:2], done.stderr, done.returncode) == ("é😀", b"", 0)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("nowhere", "a"), "there is no such folder", 1),
        ((TRAINED, "a", "--beam", 0), "beam = 0: must be at least 1", 1),
        ((TRAINED, "a", "--temperature", 0.5), "are for sampling: add --sample", 1),
        ((TRAINED, "a", "--seed", 1), "are for sampling: add --sample", 1),
        ((TRAINED, "a", "--sample", "--temperature", 0), "temperature = 0.0: must be above 0", 1),
        ((TRAINED, "a", "--baem", 4), "Did you mean --beam?", 2),
        ((TRAINED, "a", "--beam", "four"), "four", 2),
        ((TRAINED, "-5 degrees"), 'A text that begins with a dash goes after --: translate RUN -- "-5 degrees"', 2),
        ((TRAINED, "-5 degrees"), "Unknown option: -5 degrees", 2),
        ((), "run", 2),
    ],
)
def test_mistakes_get_a_sentence_and_an_exit_code(
    verb: Verb, arguments: tuple[object, ...], message: str, code: int
) -> None:
    lines, notes, stopped = verb("translate", *arguments)
    assert (message in notes, stopped, lines) == (True, code, [])


@pytest.mark.parametrize(
    ("name", "option"), [("generate", "--repetition-penalty"), ("generate", "--top-p"), ("chat", "--temperature")]
)
def test_greedy_text_is_not_drawn(verb: Verb, name: str, option: str) -> None:
    lines, notes, code = verb(name, TRAINED, "--greedy", option, 0.5)
    assert ("--greedy takes the most likely token" in notes, code, lines) == (True, 1, [])


@pytest.mark.parametrize("name", [name for name in app if not name.startswith("-")])
def test_help_explains_every_option(name: str) -> None:
    arguments = app[name].assemble_argument_collection(parse_docstring=True)
    assert arguments
    options = [argument for argument in arguments if not argument.children]  # else a group of them, which is flattened
    assert [option.name for option in options if not option.parameter.help] == []


@pytest.mark.parametrize("name", ["translate", "generate", "chat", "classify", "embed"])
def test_the_wrong_verb_names_the_right_one(verb: Verb, runs: dict[str, Path], name: str) -> None:
    task, right = ("language", "generate") if name == "translate" else ("translation", "translate")
    _, notes, code = verb(name, runs[task], *([] if name == "chat" else ["a"]))
    assert (f"was trained for {task}" in notes, f"use it with `clearhead {right}`" in notes, code) == (True, True, 1)


# --- real processes, pipes and terminals ------------------------------------------------------------------------------


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


def endless(folder: Path, **settings: str) -> Path:
    """A run whose greedy text never ends: <end> is never the likeliest."""
    run = tiny_run("decoder-only", position="rotary", **settings)
    run.model.get_parameter("head.project.weight").data[run.tokenizers.target.end] = 0
    return save(run, folder)


def test_ctrl_c_stops_a_text_in_the_middle(tmp_path: Path) -> None:
    process = start(
        *("generate", endless(tmp_path), "the red", "--greedy", "--tokens", 10**6),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.read(30).startswith(b"the red")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert (errors, process.returncode) == (b"", 130)


@pytest.mark.timeout(120)
def test_in_a_terminal_ctrl_c_stops_an_answer_and_the_conversation_goes_on(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    process = start(
        *("chat", endless(tmp_path / "run", task="chat"), "--greedy", "--tokens", 10**6),
        **dict.fromkeys(("stdin", "stdout", "stderr"), inside),
    )
    os.close(inside)
    assert b"/save FILE" in read_until(terminal, b"\n> ")
    os.write(terminal, b"the dog\n")
    read_until(terminal, b"the dog\r\n")
    assert os.read(terminal, 1)  # it has begun to answer
    process.send_signal(signal.SIGINT)
    read_until(terminal, b"\n> ")
    process.send_signal(signal.SIGINT)  # at the prompt, it only takes the line back
    os.write(terminal, b"\n")  # Python may notice the signal only now, if it came just before it waits for a key
    read_until(terminal, b"\n> ")
    os.write(terminal, f"/save {tmp_path / 'talk.json'}\n".encode())
    read_until(terminal, b"messages in .*\n> ")
    os.write(terminal, b"\x04")
    assert process.wait(100) == 0
    roles = [message["role"] for message in json.loads((tmp_path / "talk.json").read_text())]
    assert roles == ["user", "assistant"]


@pytest.mark.timeout(120)
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_and_a_damaged_run_are_told_in_a_sentence(tmp_path: Path, verb: Verb) -> None:
    with open("/dev/full", "wb") as full:
        process = start("translate", TRAINED, "a cat", stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=100)
    assert (errors, process.returncode) == (b"clearhead: cannot write the results: No space left on device\n", 1)
    folder = save(tiny_run(), tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    _, notes, code = verb("translate", folder, "a cat")
    assert ("the weights cannot be read" in notes, "take them from a copy, or train again" in notes, code) == (
        True,
        True,
        1,
    )
