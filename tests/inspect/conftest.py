"""Windows of the browser, for the tests of the explorer's page, and a server without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from browsing import Visit, Windows, new_window, served
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import Server
from explored_runs import folder_of
from page_tokenizers import Ask, javascript


@pytest.fixture(scope="session")
def windows(browser: Any) -> Iterator[Windows]:
    """Windows that tests use one after the other, one for each choice of runs and settings."""
    with ExitStack() as undo:
        yield Windows(browser, undo)


@pytest.fixture
def visit(browser: Any, windows: Windows) -> Iterator[Callable[..., Visit]]:
    """Opens a browser window on the explorer of a run; afterwards nothing may have gone wrong in it.

    It may be a window that another test has used: a page that is loaded anew costs half of a new window. A test that
    names an explorer gets a window of its own: it may close it, listen to it or change its settings.
    """
    with ExitStack() as undo:
        visits: list[Visit] = []

        def open_window(*kinds: str, explorer: Explorer | None = None, **wishes: Any) -> Visit:
            if explorer:
                found = new_window(browser, explorer, undo, **wishes)
            else:
                found = windows.take(*kinds, **wishes)
                undo.callback(windows.give_back, found)
            visits.append(found)
            return found

        yield open_window
        for found in visits:
            assert found.wrong == []


@pytest.fixture(scope="session")
def ask(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Answers questions to a tokenizer in JavaScript."""
    with javascript(tmp_path_factory.mktemp("node"), partial(request.getfixturevalue, "browser")) as asked:
        yield asked


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer([folder_of("translator")])


@pytest.fixture(scope="module")
def server(explorer: Explorer) -> Iterator[Server]:
    with served(explorer) as running:
        yield running
