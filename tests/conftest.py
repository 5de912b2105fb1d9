"""Settings and fixtures of all tests: one thread and a fixed seed, so that numbers are the same in every run."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from clearhead.cli import main
from command_line import Said, Verb
from patience import PATIENCE
from saved_runs import save_all

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell, a suite has it ignored

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Without pytest-timeout, its setting in pyproject.toml is known and has no effect."""
    if not pluginmanager.hasplugin("timeout"):
        parser.addini("timeout", "seconds of one test: needs pytest-timeout")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An untrained run folder for each task."""
    torch.manual_seed(0)
    return save_all(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Verb:
    """The command line in this process: stdin is given, everything else is real."""

    def run(*arguments: object, stdin: bytes | str = b"") -> Said:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["clearhead", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = 0
        try:
            main()
        except SystemExit as stopped:
            if isinstance(stopped.code, str):
                sys.stderr.write(stopped.code)
            code = 1 if isinstance(stopped.code, str) else int(stopped.code or 0)
        out, error = capsysbinary.readouterr()
        assert b"Traceback" not in error
        return out.decode().split("\n")[:-1], error.decode(), code

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium on the PATH, else Playwright's own; where there is none, in continuous integration that is a failure.

    All tests share it: a process cannot start Playwright twice.
    """
    if "CI" not in os.environ:
        pytest.importorskip("playwright", reason="no Playwright: pip install playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next(filter(None, map(shutil.which, names)), playwright.chromium.executable_path)
        if not Path(path).exists():
            (pytest.fail if "CI" in os.environ else pytest.skip)("no Chromium: `make .venv/browser` gets one")
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * PATIENCE)
        yield chromium
        chromium.close()
