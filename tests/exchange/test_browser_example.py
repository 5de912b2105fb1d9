"""The example for the browser: its tokenizer is ours, and it translates as greedy search does."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import TokenizerConfig
from clearhead.decode.translate import Searching, translate
from clearhead.exchange.targets import export_run
from clearhead.runs import open_run
from clearhead.text.tokenizer import train_tokenizer
from saved_runs import save
from tiny_runs import SENTENCES, tiny_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HARD = ["", " ", "It's  3.14!\n\n  été ☃ 日本語", "<end> we'll  ", "aaaa bbbb", "x\ty"]


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
        ["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True, timeout=60
    )
    ids = [tokenizer.encode(text) for text in texts]
    assert json.loads(done.stdout) == [ids, [tokenizer.decode(row) for row in ids]]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(
    not (EXAMPLE / "node_modules" / "onnxruntime-web").is_dir(),
    reason="onnxruntime-web is not installed: npm install --prefix examples/browser",
)
@pytest.mark.skipif(CHROMIUM is None, reason="no browser on the PATH")
def test_the_page_translates_as_greedy_search_does(tmp_path: Path) -> None:
    sync_api: Any = pytest.importorskip("playwright.sync_api")
    run = open_run(save(tiny_run(position="rotary"), tmp_path / "run"))
    (tmp_path / "example").symlink_to(EXAMPLE)
    export_run(run.folder, tmp_path / "exported", "onnx")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.route("**/encoder.onnx", lambda route: (time.sleep(1), route.continue_()))  # Enter comes before the model
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/example/index.html?model=../exported")
        for text, [best] in zip(SENTENCES, translate(run, SENTENCES, Searching(beam=1)), strict=True):
            page.fill("input", text)
            page.press("input", "Enter")
            sync_api.expect(page.locator("output")).to_have_text(best.text, timeout=60_000)
        browser.close()
    server.shutdown()
    server.server_close()
