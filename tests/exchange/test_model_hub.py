"""Names on the hub: downloaded with `huggingface_hub`, here from a server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from clearhead.runs import open_run
from llama_folders import folder_with

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
PROXY = ("NO_PROXY", "no_proxy")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A hub with one model, tiny/llama: its address, and the files that were asked for."""
    asked: list[str] = []
    names = [path.name for path in folder.iterdir()]

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = urlsplit(self.path).path
            name = path.rpartition("/")[2]
            if path.startswith("/api/models/tiny/llama"):
                info = {"id": "tiny/llama", "sha": COMMIT, "siblings": [{"rfilename": each} for each in names]}
                tree = [{"type": "file", "path": each, "oid": "0" * 40, "size": 1} for each in names]
                self.send(json.dumps(tree if "/tree/" in path else info).encode(), body, "application/json")
            elif path.startswith("/tiny/llama/resolve/") and name in names:
                asked.append(name)
                self.send((folder / name).read_bytes(), body, "application/octet-stream")
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def send(self, content: bytes, body: bool, kind: str) -> None:
            self.send_response(200)
            headers = {"Content-Type": kind, "Content-Length": str(len(content)), "X-Repo-Commit": COMMIT}
            for name, value in (headers | {"ETag": f'"{hash(content)}"'}).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def import_from(address: str, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {"HF_ENDPOINT": address, "HF_HOME": str(folder / "cache"), "HF_HUB_DISABLE_XET": "1"}
    settings |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "0"} | dict.fromkeys(PROXY, "127.0.0.1")
    command = [sys.executable, "-m", "clearhead", "import", name, str(folder / "run")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | settings)


def test_a_model_is_downloaded_by_its_name_without_pickle_and_code(tmp_path: Path) -> None:
    model = folder_with(tmp_path / "model")
    (model / "pytorch_model.bin").write_bytes(b"pickle")
    (model / "modeling.py").write_text("raise SystemExit")
    with hub(model) as (address, asked):
        done = import_from(address, "tiny/llama", tmp_path)
    assert done.returncode == 0, done.stderr
    assert open_run(tmp_path / "run").recipe.about == "imported from tiny/llama (LlamaForCausalLM)"
    assert {*asked} == {"config.json", "tokenizer.json", "model.safetensors"}


def test_a_name_that_the_hub_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    with hub(folder_with(tmp_path / "model")) as (address, _):
        done = import_from(address, "tiny/unknown", tmp_path)
    assert done.returncode == 1
    assert "'tiny/unknown': there is no such folder, and it cannot be downloaded" in done.stderr
    assert "Traceback" not in done.stderr
