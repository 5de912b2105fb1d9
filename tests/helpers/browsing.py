"""The explorer's page in a real browser, for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import torch

from clearhead.decode.sampling import SamplingSettings
from clearhead.inspect.trace import Trace
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import Server
from explored_runs import folder_of
from patience import PATIENCE
from tiny_runs import TEXT

Page = Any
USUAL = {"width": 1280, "height": 800, "reduced_motion": "no-preference", "color_scheme": "light"}  # of a window
# Some pictures are drawn when the page has been laid out, which a browser does once a frame.
NEXT_FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
SEEN = f"""(condition) => new Promise((done, failed) => {{
    const end = Date.now() + {1000 * PATIENCE};
    const late = () => Date.now() > end ? failed(`never: ${{condition}}`) : setTimeout(look, 5);
    const look = () => condition() ? done(true) : late();
    look();
}})"""
VIEWS = [
    "overview",
    "tokenization",
    "embedding",
    "attention",
    "addnorm",
    "feedforward",
    "heads",
    "alignment",
    "residual",
]
MORE_VIEWS = {
    "translator": ["position", "next", "lens", "decoding", "beam"],
    "writer": ["position", "next", "lens", "decoding", "beam"],
    "classifier": ["position", "answer", "lens"],
    "guesser": ["position", "next", "lens"],
    "embedder": ["answer"],
}


@dataclass
class Visit:
    """One page, and all errors on it."""

    page: Page
    address: str
    explorer: Explorer | None = None
    wrong: list[str] = field(default_factory=list)

    def go(self, **state: Any) -> None:
        """Open a state of the page and wait until it is drawn."""
        self.page.goto(f"{self.address}#{urlencode({'text': TEXT, **state})}")
        self.drawn()

    def drawn(self) -> None:
        """Wait until the page shows what its address says, and nothing is under way any more."""
        self.until(
            "document.getElementById('stage').dataset.drawn === location.hash && "
            "!document.querySelector('#stage[aria-busy], #stage [aria-busy], #inspector[aria-busy], .diagram:empty')"
        )
        self.page.evaluate(NEXT_FRAME)
        error = self.page.query_selector("#stage .error")
        assert error is None, error.text_content()

    def state(self, key: str) -> str:
        """A part of the page's address."""
        return dict(parse_qsl(urlsplit(self.page.url).fragment)).get(key, "")

    def until(self, script: str) -> None:
        """Wait until a script says yes. (Playwright's own way to wait needs `eval`, which the page forbids.)"""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(25)
        pytest.fail(f"never: {script}")

    def moments(self, begin: str, *conditions_and_actions: tuple[str, str]) -> list[Any]:
        """Begin something on the page; whenever the next condition becomes true, evaluate an expression there.

        Return the values, which later expressions know as `found`. The page looks itself, every few milliseconds, so
        that a moment that passes is not missed, however slow the machine is.
        """
        steps = "".join(f"found.push(await seen(() => {when}) && {then});" for when, then in conditions_and_actions)
        return self.page.evaluate(f"async () => {{ const found = [], seen = {SEEN}; {begin}; {steps} return found; }}")

    def point(self, row: int, column: int, canvas: str = ".chosen-stage canvas") -> float:
        """Walk to a cell with the arrow keys, and read off the number that the panel gives."""
        name = self.page.get_attribute(canvas, "aria-label").partition(":")[0]
        self.page.focus(canvas)
        for key, times in (("ArrowDown", row + 1), ("ArrowRight", column)):  # the first one enters at the corner
            for _ in range(times):
                self.page.keyboard.press(key)
        value = self.page.wait_for_selector(f"#value[data-cell^='{name} '][data-cell$=',{row},{column}']")
        return float(value.get_attribute("data-value"))


@cache
def explorer_of(*kinds: str) -> Explorer:
    return Explorer([folder_of(kind, seed) for seed, kind in enumerate(kinds)])


def listen(page: Page, wrong: list[str], home: tuple[str, ...]) -> None:
    """Note console errors, exceptions, dialogs, and every request that would leave the machine."""

    def refuse(dialog: Any) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: None if request.url.startswith(home) else wrong.append(request.url))


@contextmanager
def served(explorer: Explorer) -> Iterator[Server]:
    """Serve an explorer on a free port; its thread seldom wakes, because it may live as long as all tests."""
    server = Server(explorer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def new_window(browser: Any, explorer: Explorer, undo: ExitStack, **wishes: Any) -> Visit:
    """Open a window on an explorer, which has its own server and keeps nothing of other windows."""
    server = undo.enter_context(served(explorer))
    context = USUAL | wishes
    viewport = {side: context.pop(side) for side in ("width", "height")}
    window = browser.new_context(viewport=viewport, **context)
    undo.callback(window.close)
    window.set_default_timeout(1000 * PATIENCE)
    found = Visit(window.new_page(), server.address, server.explorer)
    listen(found.page, found.wrong, (server.address, "about:"))
    return found


class Windows:
    """Windows that are used again: each is blank when it is taken, and forgets what the page has stored."""

    def __init__(self, browser: Any, undo: ExitStack) -> None:
        self.browser = browser
        self.undo = undo
        self.open: dict[Hashable, Visit] = {}

    def take(self, *kinds: str, **wishes: Any) -> Visit:
        """A window on the explorer of these runs, with this size and these settings of the browser."""
        key = (kinds, tuple(sorted((USUAL | wishes).items())))
        if key not in self.open:
            self.open[key] = new_window(self.browser, explorer_of(*kinds), self.undo, **wishes)
        return self.open[key]

    def give_back(self, window: Visit) -> None:
        """Make a window blank for the next test."""
        if window.page.url.startswith(window.address):
            window.page.evaluate("localStorage.clear()")
        window.page.mouse.move(0, 0)
        window.page.goto("about:blank")
        window.wrong.clear()  # last, since an error may be reported while the page is left


def probabilities(window: Visit) -> dict[int, float]:
    """What the view of the next token shows, at the right where there are two: id -> probability."""
    script = "all => all.map(one => [one.dataset.id, one.querySelector('output').dataset.probability])"
    return {
        int(i): float(p)
        for i, p in window.page.eval_on_selector_all(".next-words:not(.beside > :first-child *) [data-id]", script)
    }


def expected_next(traced: Trace, choice: SamplingSettings | None = None, place: int = 1) -> torch.Tensor:
    return (choice or SamplingSettings()).probabilities(traced["head.logits"][0, place : place + 1])[0]


def texts(window: Visit, selector: str) -> list[str]:
    return [text for text in window.page.locator(selector).all_text_contents() if text.strip()]
