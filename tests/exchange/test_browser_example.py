"""The example for the browser: its tokenizer is ours, and it translates as greedy search does."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import TokenizerConfig
from clearhead.decode.translate import SearchSettings, translate
from clearhead.exchange.targets import export_run
from clearhead.runs import Run, open_run
from clearhead.text.tokenizer import train_tokenizer
from patience import PATIENCE
from saved_runs import save
from tiny_runs import SENTENCES, tiny_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "browser"
HARD = ["", " ", "It's  3.14!\n\n  été ☃ 日本語", "<end> we'll  ", "aaaa bbbb", "x\ty"]


def in_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that needs a browser and the package that runs the programs in it."""
    installed = (EXAMPLE / "node_modules" / "onnxruntime-web").is_dir()
    reason = "onnxruntime-web is not installed: npm install --prefix examples/browser"
    return pytest.mark.long(pytest.mark.slow(pytest.mark.skipif(not installed, reason=reason)(test)))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("lowercase", [False, True])
def test_its_tokenizer_gives_our_ids_and_texts(lowercase: bool, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(vocab=330, lowercase=lowercase), SENTENCES * 20, progress=False)
    tokenizer.save(tmp_path / "tokenizer.json")
    texts = [*SENTENCES, *HARD, "The RED car"]
    code = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ Tokenizer }} from {json.dumps((EXAMPLE / "translate.js").as_uri())};
        const tokenizer = new Tokenizer(JSON.parse(readFileSync({json.dumps(str(tmp_path / "tokenizer.json"))})));
        const ids = {json.dumps(texts)}.map((text) => tokenizer.encode(text));
        console.log(JSON.stringify([ids, ids.map((row) => tokenizer.decode(row))]));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    ids = [tokenizer.encode(text) for text in texts]
    assert json.loads(done.stdout) == [ids, [tokenizer.decode(row) for row in ids]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(save(tiny_run(position="rotary"), tmp_path_factory.mktemp("browser") / "run"))


MODEL_AFTER_A_TEXT = """
    const load = window.fetch;
    const entered = new Promise((done) => addEventListener("submit", done, { once: true }));
    window.fetch = async (...request) => {
        if (`${request[0]}`.endsWith("encoder.onnx")) await entered;
        return load(...request);
    };
"""


@pytest.fixture
def page(run: Run, browser: Any) -> Iterator[Any]:
    """The example in a new window, with an exported run, before the run is loaded."""
    root = run.folder.parent
    if not (root / "exported").exists():
        (root / "example").symlink_to(EXAMPLE)
        export_run(run.folder, root / "exported", "onnx")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    window = browser.new_context()
    window.set_default_timeout(1000 * PATIENCE)
    page = window.new_page()
    page.add_init_script(MODEL_AFTER_A_TEXT)
    page.goto(f"http://127.0.0.1:{server.server_address[1]}/example/index.html?model=../exported")
    yield page
    window.close()
    server.shutdown()
    server.server_close()


def enter(page: Any, text: str) -> None:
    page.fill("input", text)
    page.press("input", "Enter")


def wait_for(page: Any, text: str) -> None:
    sync_api: Any = pytest.importorskip("playwright.sync_api")
    sync_api.expect(page.locator("output")).to_have_text(text, timeout=1000 * PATIENCE)


@in_browser
def test_the_page_translates_as_greedy_search_does(page: Any, run: Run) -> None:
    for text, [best] in zip(SENTENCES, translate(run, SENTENCES, SearchSettings(beam=1)), strict=True):
        enter(page, text)
        wait_for(page, best.text)


SLOW = """async (slow) => {
    const { Translator } = await import("./translate.js");
    const { translate } = Translator.prototype;
    Translator.prototype.translate = async function (text) {
        const found = await translate.call(this, text);
        if (text === slow) await new Promise((done) => (window.release = done));
        return found;
    };
}"""


@in_browser
def test_an_earlier_text_that_takes_longer_is_not_shown(page: Any, run: Run) -> None:
    [[_], [slow], [quick], _] = translate(run, SENTENCES, SearchSettings(beam=1))
    assert slow.text != quick.text
    page.evaluate(SLOW, SENTENCES[1])
    enter(page, SENTENCES[1])
    page.evaluate("new Promise((done) => (function look() { window.release ? done() : setTimeout(look, 5); })())")
    enter(page, SENTENCES[2])
    wait_for(page, quick.text)
    page.evaluate("window.release()")
    page.evaluate("new Promise((done) => setTimeout(done))")  # by then it would be shown
    wait_for(page, quick.text)
