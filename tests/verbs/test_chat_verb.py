"""`clearhead chat`: through a pipe and in a terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
from pathlib import Path

import clearhead
from clearhead.terminal.pipes import on_one_line
from command_line import Verb, read_until, start
from saved_runs import save_endless


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


def test_a_file_that_exists_is_kept_unless_the_conversation_was_saved_in_it(
    verb: Verb, runs: dict[str, Path], tmp_path: Path
) -> None:
    mine, talk = tmp_path / "mine.json", tmp_path / "talk.json"
    mine.write_text("mine")
    said = f"/save {mine}\n/save {talk}\nthe dog\n/save {talk}\n/reset\n/save {talk}\n"
    _, notes, code = verb("chat", runs["chat"], "--greedy", "--tokens", 8, stdin=said)
    assert code == 0
    assert f"{mine} exists already; give another name\n" in notes
    assert f"(2 messages in {talk})\n(a new conversation)\n{talk} exists already; give another name" in notes
    assert mine.read_text() == "mine"
    assert len(json.loads(talk.read_text())) == 2


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


def test_in_a_terminal_ctrl_c_stops_an_answer_and_the_conversation_goes_on(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    process = start(
        *("chat", save_endless(tmp_path / "run", task="chat"), "--greedy", "--tokens", 10**6),
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
