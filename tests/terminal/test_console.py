"""Text on the terminal is what was written: file names, data and models contain no markup and no control characters."""

from __future__ import annotations

import io
import os
import pty
from contextlib import suppress
from pathlib import Path

import pytest
from rich.text import Text

from clearhead.terminal.console import plain_console
from clearhead.terminal.pipes import note
from clearhead.terminal.progress import progress_bar
from clearhead.terminal.streams import harmless
from command_line import Terminal, Verb, start
from patience import PATIENCE

NAME = "[bold]my :cat: [/x]"


def test_brackets_and_colons_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    plain_console(width=80).print(NAME)
    assert capsys.readouterr().out == f"{NAME}\n"


def test_a_folder_with_brackets_in_its_name_is_trained_into_and_shown(verb: Verb, tmp_path: Path) -> None:
    corpus = tmp_path / "[red]c :dog:"
    corpus.mkdir(parents=True)
    (corpus / "train.tsv").write_text("a [/b] cat\tun [/b] chat\n" * 20)
    small = "tokenizer.vocab=300 model.d_model=16 model.d_ff=32 model.layers=1 train.steps=1 train.device=cpu"
    settings = [f"data.path={corpus}", "data.corpus=", "data.source=1", "data.target=2", *small.split()]
    settings += ["data.hold_out=0.2", f"data.cache={tmp_path / 'cache'}"]
    run = tmp_path / "[bold]r :cat:"
    _, notes, code = verb("train", "phrasebook", *settings, "--run", run)
    assert (f"the run is in {run}; next: " in notes, code) == (True, 0)
    for name, folder, options in (("evaluate", run, ["--split", "valid"]), ("data", corpus, settings[2:5])):
        lines, notes, code = verb(name, folder, *options)
        assert (folder.name in lines[0], notes, code) == (True, "", 0), (lines, notes)
    lines, notes, code = verb("train", "phrasebook", *settings, "--dry-run")
    assert (f"{corpus}, translation" in "\n".join(lines), notes, code) == (True, "", 0)


EVIL = "a\x1b[2J\x9b2Jb\x07\r"
SHOWN = r"a\x1b[2J\x9b2Jb\x07\r"


def test_a_terminal_gets_control_characters_escaped_and_a_pipe_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert harmless(f"{EVIL}\té à\u202f!\n", Terminal()) == f"{SHOWN}\té à\u202f!\n"
    assert harmless(EVIL, io.StringIO()) == EVIL
    with Terminal() as terminal:
        note(EVIL)
        plain_console(stderr=True, width=80).print(Text("\x1b[2J red", style="red"))
        with progress_bar("reading \x1b[2J"):
            pass
    shown = terminal.getvalue()
    assert shown.startswith(f"{SHOWN}\n")
    assert "\\x1b[2J red" in shown
    assert "\x1b[31m" in shown  # our own colours, and cursor movements, are no text
    assert "\x1b[2K" in shown
    assert "\x1b[2J" not in shown
    note(EVIL)
    assert capsys.readouterr().err == f"{EVIL}\n"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("generate", ("--greedy", "--tokens", 3, EVIL)),
        ("generate", ("--greedy", "--tokens", 3, EVIL, EVIL)),
        ("tokenize", (EVIL,)),
        ("classify", (EVIL,)),  # its note quotes the text
        ("translate", ("no/where\x1b[2J", "a")),  # an error
    ],
)
def test_no_verb_lets_a_text_control_the_terminal(
    runs: dict[str, Path], name: str, options: tuple[object, ...]
) -> None:
    task = {"generate": "language", "classify": "classification"}.get(name)
    terminal, inside = pty.openpty()
    process = start(name, *([runs[task]] if task else []), *options, stdout=inside, stderr=inside)
    os.close(inside)
    written = b""
    with suppress(OSError):  # the end of a terminal
        while part := os.read(terminal, 1 << 16):
            written += part
    assert process.wait(PATIENCE) in (0, 1)
    assert b"Traceback" not in written
    assert b"\x1b[2J" not in written
    assert name == "classify" or rb"\x1b" in written
