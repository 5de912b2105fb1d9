"""Text on the terminal is what was written: brackets and colons in file names and data are not markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.terminal.console import plain_console
from command_line import Verb

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
