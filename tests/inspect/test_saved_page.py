"""The page saved as one file: it shows every view without a server, within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browsing import MORE_VIEWS, VIEWS, Visit, listen
from clearhead.config import UserError
from clearhead.inspect.trace import trace
from clearhead.inspect.web import share
from clearhead.inspect.web.share import write_page
from explored_runs import KINDS, folder_of, opened
from patience import PATIENCE
from tiny_runs import TEXT


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_file_shows_it_all_without_a_server(
    kind: str, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.html"
    monkeypatch.setattr(share, "MOST_CELLS", 100)
    monkeypatch.setattr(share, "MOST_LOGITS", 10)
    write_page(folder_of(kind), TEXT, path)
    context = browser.new_context(offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    window = Visit(context.new_page(), f"file://{path}")
    listen(window.page, window.wrong, ("file:", "data:", "blob:"))
    for view in VIEWS + MORE_VIEWS[kind]:
        window.go(view=view)
    assert window.page.evaluate("document.styleSheets.length") == 3  # style.css, views.css, diagram.css
    assert window.page.is_disabled("#sentence input")
    assert "cannot be changed" in window.page.text_content("#sentence")
    stack = "decoder" if kind == "writer" else "encoder"
    window.go(view="attention", stack=stack)
    expected = trace(opened(kind), TEXT)[f"{stack}.blocks.0.attention.weights"][0, 0, 1, 1].item()
    assert window.point(1, 1) == pytest.approx(expected, abs=1e-6)
    assert window.wrong == []
    context.close()


def test_a_saved_file_has_the_value_of_every_cell(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share, "MOST_CELLS", 1)
    monkeypatch.setattr(share, "MOST_LOGITS", 1)
    write_page(folder_of("classifier"), TEXT, tmp_path / "out.html")
    context = browser.new_context(offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    window = Visit(context.new_page(), f"file://{tmp_path / 'out.html'}")
    listen(window.page, window.wrong, ("file:", "data:", "blob:"))
    window.go(view="attention", stack="encoder", stage="values", layer=1)
    expected = trace(opened("classifier"), TEXT)["encoder.blocks.1.attention.values"][0, 0, 2, 1].item()
    assert window.point(2, 1) == pytest.approx(expected, abs=1e-6)
    assert "clearhead explore RUN" in window.page.text_content("#cell p.note")
    assert window.wrong == []
    context.close()


def test_a_file_needs_a_text_and_a_place(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a text"):
        write_page(folder_of("embedder"), "", tmp_path / "out.html")
    with pytest.raises(UserError, match="nowhere; create it first"):
        write_page(folder_of("embedder"), TEXT, tmp_path / "nowhere" / "out.html")


def test_a_text_too_large_for_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "MOST_TENSOR_BYTES", 1000)
    with pytest.raises(UserError, match="the tensors of this text take"):
        write_page(folder_of("embedder"), TEXT, tmp_path / "out.html")
