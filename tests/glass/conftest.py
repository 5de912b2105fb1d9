"""A browser, and windows in it, for the tests of the explorer's page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from browsing import FLAGS, PATIENCE, Visit, explorer_of, listen, served
from clearhead.glass.web.explorer import Explorer


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium on the PATH, else Playwright's own; where there is none, in continuous integration that is a failure."""
    if "CI" not in os.environ:
        pytest.importorskip("playwright", reason="no Playwright: pip install playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next(filter(None, map(shutil.which, names)), playwright.chromium.executable_path)
        if not Path(path).exists():
            (pytest.fail if "CI" in os.environ else pytest.skip)("no Chromium: `make .venv/browser` gets one")
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Opens a browser window on the explorer of a run; afterwards nothing may have gone wrong in it."""
    with ExitStack() as undo:
        visits: list[Visit] = []

        def open_window(
            *kinds: str, explorer: Explorer | None = None, width: int = 1280, height: int = 800, **context: Any
        ) -> Visit:
            server = undo.enter_context(served(explorer or explorer_of(*kinds)))
            window = browser.new_context(viewport={"width": width, "height": height}, **context)
            undo.callback(window.close)
            window.set_default_timeout(1000 * PATIENCE)
            found = Visit(window.new_page(), server.address, server.explorer)
            listen(found.page, found.wrong, (server.address, "about:"))
            visits.append(found)
            return found

        yield open_window
        for found in visits:
            assert found.wrong == []
