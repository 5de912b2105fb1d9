"""The published page in a real browser: every view, other texts and changes, on a plain web server, and offline."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browsing import MORE_VIEWS, VIEWS, Visit, listen
from clearhead.config import UserError
from clearhead.inspect.patch import knock_out
from clearhead.inspect.trace import trace
from clearhead.inspect.web.site import write_site
from command_line import Verb
from explored_runs import folder_of, opened
from patience import PATIENCE
from tiny_runs import SENTENCES

WEIGHTS = "encoder.blocks.0.attention.weights"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class WebSpace(ThreadingHTTPServer):
    """A plain web server for a folder."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(QuietHandler, directory=str(root)))
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.shutdown()
            self.server_close()
            self.thread.join()


@contextmanager
def visited(browser: Any, root: Path, *kinds: str) -> Iterator[tuple[Visit, WebSpace]]:
    """A window on a page that is published in a folder of a web space."""
    write_site([folder_of(kind, seed) for seed, kind in enumerate(kinds)], root / "my" / "model")
    space = WebSpace(root)
    home = f"http://127.0.0.1:{space.server_port}/my/model/"
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE)
    window = Visit(context.new_page(), home)
    listen(window.page, window.wrong, (home,))
    try:
        yield window, space
        assert window.wrong == []
    finally:
        context.close()
        space.stop()


@pytest.mark.parametrize("kind", ["translator", "writer", "classifier", "embedder"])
def test_a_published_page_shows_every_view(kind: str, browser: Any, tmp_path: Path) -> None:
    with visited(browser, tmp_path, kind) as (window, _):
        for view in VIEWS + MORE_VIEWS[kind]:
            window.go(view=view)
        assert window.page.is_enabled("#sentence input")


def test_a_published_page_computes_other_texts_changes_and_snapshots(browser: Any, tmp_path: Path) -> None:
    run = opened("translator")
    name = "encoder.blocks.1.attention.weights"
    change = {"encoder.blocks.0.attention.head_outputs": [{"kind": "scale", "value": 0, "at": {"head": [1]}}]}
    with visited(browser, tmp_path, "translator") as (window, _):
        state = {"view": "attention", "stack": "encoder", "layer": 1, "text": SENTENCES[1]}
        window.go(**state)
        expected = trace(run, SENTENCES[1])
        assert window.point(1, 2) == pytest.approx(expected[name][0, 0, 1, 2].item(), abs=1e-4)
        window.go(**state, changes=json.dumps(change))
        changed = expected.again({"encoder.blocks.0.attention.head_outputs": knock_out(head=1)})
        assert window.point(1, 2) == pytest.approx(changed[name][0, 0, 1, 2].item(), abs=1e-4)
        window.until("document.querySelector('#changes').textContent.includes('P(')")
        window.go(**state, snapshot=7)
        window.go(**{**state, "view": "lens"})


def test_a_published_page_works_offline_after_the_first_visit(browser: Any, tmp_path: Path) -> None:
    with visited(browser, tmp_path, "classifier") as (window, space):
        window.go(view="overview")
        window.until("navigator.serviceWorker.controller !== null")
        space.stop()
        window.page.reload()
        window.drawn()
        window.go(view="answer", text=SENTENCES[2])


def test_two_published_runs_are_compared(browser: Any, tmp_path: Path) -> None:
    with visited(browser, tmp_path, "writer", "writer") as (window, _):
        window.go(view="attention", beside="run")
        assert window.page.locator(".beside").count() == 1


def test_a_site_is_written_to_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    with pytest.raises(UserError, match="is not empty"):
        write_site([folder_of("embedder")], tmp_path)


@pytest.mark.parametrize("options", [("--half",), ("--site", "site", "--html", "out.html")])
def test_options_that_do_not_belong_together_are_refused(options: tuple[str, ...], verb: Verb, tmp_path: Path) -> None:
    _, error, code = verb("explore", str(folder_of("embedder")), *options)
    assert (code, "--site" in error) == (1, True)
