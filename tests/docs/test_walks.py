"""The walks of docs/architecture.md: the functions that they name are really called, in that order."""

from __future__ import annotations

import queue
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import clearhead
from browsing import Visit
from clearhead import cli
from clearhead.inspect.web.server import Server
from explored_runs import folder_of
from patience import PATIENCE
from saved_runs import save
from tiny_runs import tiny_run

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(clearhead.__file__).parent
ROW = re.compile(r"^\| `([\w./]+)` \| (`[\w.`, ]+`) \|", re.MULTILINE)

Function = tuple[str, str]  # its file in the package, and its name


def walk(title: str, kind: str = "py") -> list[Function]:
    """The functions of a walk in files of a kind, in their order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    table = page.split(f"### {title}")[1].split("#")[0]
    rows = [(file, name) for file, names in ROW.findall(table) for name in re.findall(r"[\w.]+", names)]
    return [(file, name) for file, name in rows if file.endswith(f".{kind}")]


@contextmanager
def noting_calls(calls: list[Function]) -> Iterator[None]:
    """Note every function of the package when it is first called, in any thread that begins from now on."""
    seen: dict[int, CodeType] = {}  # by identity: to compare code takes longer than most calls

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and id(code) not in seen:
            seen[id(code)] = code
            if code.co_filename.startswith(str(PACKAGE)):
                calls.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def assert_walked(named: list[Function], calls: list[Function]) -> None:
    assert len(named) > 5
    assert [function for function in named if function not in calls] == []
    assert named == sorted(named, key=calls.index)


def run_command(*arguments: str) -> list[Function]:
    """Run a command; return the functions that were called."""
    calls: list[Function] = []
    with pytest.MonkeyPatch.context() as patch, noting_calls(calls):
        patch.setattr(sys, "argv", ["clearhead", *arguments])
        cli.main()
    return calls


def test_a_sentence_walks_through_translate(tmp_path: Path) -> None:
    folder = save(tiny_run("encoder-decoder"), tmp_path / "run")
    assert_walked(walk("A sentence"), run_command("translate", str(folder), "the red car is fast"))


def test_a_batch_walks_from_train_to_a_checkpoint(tmp_path: Path) -> None:
    small = "data.size=200 tokenizer.vocab=400 model.d_model=32 model.d_ff=64 train.steps=4 train.evaluate_every=2"
    options = ["--run", str(tmp_path / "run"), *small.split(), f"data.cache={tmp_path}"]
    assert_walked(walk("A batch"), run_command("train", "phrasebook", *options))


def called_functions(session: Any) -> set[tuple[str, str]]:
    """The functions of the page that were called: their script and their name."""
    scripts = session.send("Profiler.takePreciseCoverage")["result"]
    functions = [(script["url"].rpartition("/")[2], each) for script in scripts for each in script["functions"]]
    return {(script, each["functionName"]) for script, each in functions if each["ranges"][0]["count"]}


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[Function]]]:
    """The address of `clearhead explore` in a thread, and the functions that it calls."""
    servers: queue.Queue[Server] = queue.Queue()
    run_server = Server.serve_forever

    def serve(server: Server) -> None:
        servers.put(server)
        run_server(server, poll_interval=0.02)

    monkeypatch.setattr(Server, "serve_forever", serve)
    monkeypatch.setattr(sys, "argv", ["clearhead", "explore", str(folder_of("translator")), "--port=0", "--no-open"])
    calls: list[Function] = []
    with noting_calls(calls):
        thread = threading.Thread(target=cli.main)
        thread.start()
        server = servers.get(timeout=PATIENCE)
        yield server.address, calls
        server.shutdown()
        thread.join()


def test_a_number_walks_from_the_model_to_a_cell(browser: Any, explored: tuple[str, list[Function]]) -> None:
    address, calls = explored
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    window = Visit(context.new_page(), address)
    session = context.new_cdp_session(window.page)
    session.send("Profiler.enable")
    session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
    window.go(view="attention", stack="encoder", layer=1, head=2, stage="scores")
    window.point(3, 1)
    on_the_page = called_functions(session)
    context.close()
    assert {(Path(file).name, name) for file, name in walk("A number", "js")} <= on_the_page
    assert_walked(walk("A number"), calls)
