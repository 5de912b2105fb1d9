"""The walks of docs/architecture.md: every function that they name is really called, in that order."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import clearhead
from clearhead import cli
from saved_runs import save
from tiny_runs import tiny_run

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(clearhead.__file__).parent
STEP = re.compile(r"^\| `([\w./]+\.py)` \| (`[\w.`, ]+`) \|", re.MULTILINE)


def walk(title: str) -> list[tuple[str, str]]:
    """The files and functions of a walk, in their order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    table = page.split(title)[1].split("###")[0]
    return [(file, name) for file, names in STEP.findall(table) for name in re.findall(r"[\w.]+", names)]


def first_calls(compute: Callable[[], object]) -> list[tuple[str, str]]:
    """The functions of the package that were called, in the order of their first calls, in all threads."""
    found: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            found.setdefault((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        compute()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def assert_walked(steps: list[tuple[str, str]], calls: list[tuple[str, str]]) -> None:
    places = []
    for file, name in steps:
        matching = [place for place, (of, called) in enumerate(calls) if of == file and called.startswith(name)]
        assert matching, f"{file}: {name} is not called"
        places.append(matching[0])
    assert [steps[i] for i in sorted(range(len(steps)), key=lambda i: places[i])] == steps


def test_a_sentence_walks_through_translate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save(tiny_run("encoder-decoder"), tmp_path / "run")

    monkeypatch.setattr(sys, "argv", ["clearhead", "translate", str(folder), "the red car is fast"])

    def translate() -> None:
        with pytest.raises(SystemExit):
            cli.main()

    assert_walked(walk("### A sentence through"), first_calls(translate))
