"""The pages of the server: complete, without anything from elsewhere, and nothing else can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.runs import open_run
from served_runs import TestClient, client_of


@pytest.fixture(scope="module")
def saved(runs: dict[str, Path]) -> Iterator[TestClient]:
    with client_of([open_run(runs["language"])]) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/docs", "/explore/language/"])
def test_a_page_loads_only_files_of_the_server(saved: TestClient, path: str) -> None:
    page = saved.get(path)
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'self'")
    links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert len(links) >= 2
    for link in links:
        assert saved.get(f"{path.rpartition('/')[0]}/{link}").status_code in (200, 404 if link == "explore/" else 200)
    assert not re.search(r"https?://(?!www\.w3\.org)", page.text)


def test_the_explorer_answers_below_the_name_of_its_run(saved: TestClient) -> None:
    assert saved.get("/explore/language").url.path == "/explore/language/"
    assert saved.get("/explore/language/api/run").json()["runs"]
    trace = saved.get("/explore/language/api/trace", params={"run": "0", "text": "a cat"})
    assert "error" in trace.json() or trace.status_code == 200
    assert saved.post("/explore/language/api/close", content=b"[]").status_code == 200
    for wrong in (b"{", b"[" * 10**5, b"\xff", b"[1]"):
        assert saved.post("/explore/language/api/close", content=wrong).status_code == 400


@pytest.mark.parametrize(
    "path",
    ["/page/../app.py", "/page/%2e%2e/app.py", "/page/nothing", "/explore/nobody/", "/explore/language/run.toml"],
)
def test_nothing_but_the_pages_can_be_read(saved: TestClient, path: str) -> None:
    assert saved.get(path).status_code == 404


def test_with_a_key_the_page_is_open_and_the_explorer_is_not(runs: dict[str, Path]) -> None:
    with client_of([open_run(runs["language"])], key="s3cret") as client:
        assert client.get("/").status_code == client.get("/page/main.js").status_code == 200
        assert client.get("/explore/language/").status_code == 401
        assert client.get("/explore/language/", headers={"Authorization": "Bearer s3cret"}).status_code == 404
        assert client.get("/ready").json()["key"] is True
