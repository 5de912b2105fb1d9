"""The folder of a student, and checks without a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.learn.catalogue import load_exercise
from clearhead.learn.checking import check


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a student, below the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "learn").mkdir()
    return tmp_path / "learn"


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks without a new process, which takes seconds."""

    def check_here(name: str, path: Path) -> object:
        return check(load_exercise(name), path)

    monkeypatch.setattr("clearhead.learn.process.check_in_process", check_here)
