"""The explorer in a real browser: every view of every family, and the ways through the page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from browsing import MORE_VIEWS, VIEWS, Visit, explorer_of
from clearhead.exchange.huggingface import import_model
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from clearhead.runs import open_run
from explored_runs import KINDS, opened
from patience import PATIENCE
from real_corpora import SHARED, needs_shared


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_opens_for_every_family_and_every_control_has_a_name(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind)
    nameless = """() => [...document.querySelectorAll("button, input, select, canvas, svg[role]")].filter(
        one => !one.closest("[aria-hidden=true]")
            && !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length)
    ).map(one => one.outerHTML)"""
    for view in VIEWS + MORE_VIEWS[kind]:
        window.go(view=view)
        assert window.page.locator("#map .chosen").count() == 1, view
        window.page.wait_for_selector("#stage :is(canvas, svg, .token, .bar, .lens)", state="attached")
        assert window.page.evaluate(nameless) == [], view


@needs_shared
def test_an_imported_llama_is_explored(visit: Callable[..., Visit], tmp_path: Path) -> None:
    import_model(str(SHARED / "stories260k"), tmp_path / "llama")
    window = visit(explorer=Explorer([tmp_path / "llama"]))
    text = "Once upon a time"
    for view in VIEWS + MORE_VIEWS["writer"]:
        window.go(view=view, text=text)
        window.page.wait_for_selector("#stage :is(canvas, svg, .token, .bar, .lens)", state="attached")
    window.go(view="attention", text=text, layer=3, head=5, stage="weights")
    traced = trace(open_run(tmp_path / "llama"), text)
    assert window.point(3, 1) == pytest.approx(
        traced["decoder.blocks.3.attention.weights"][0, 5, 3, 1].item(), abs=1e-6
    )
    window.go(view="next", text=text)
    assert "," in window.page.text_content("#stage")  # what follows: "Once upon a time,"


def test_pointing_lights_up_both_tokens_everywhere(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention", stack="encoder", stage="weights")
    window.point(2, 4)
    lit = window.page.eval_on_selector_all("#strips .lit", "all => all.map(one => one.dataset.token)")
    assert lit == ["source:2", "source:4"]


def test_two_runs_and_two_texts_are_compared_side_by_side(visit: Callable[..., Visit]) -> None:
    window = visit("translator", "translator")
    window.go(view="overview")
    window.page.click("#tools >> text=Other run")
    window.drawn()
    assert window.page.locator(".beside > section").count() == 2
    window.go(view="attention", beside="text", other="a cat runs")
    assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 1280
    assert "a cat runs" in window.page.text_content(".beside > section:last-child h2")


def test_only_the_token_in_question_is_framed(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    for state, framed in (
        ({"view": "next", "token": 2}, ["target:2"]),
        ({"view": "residual", "stack": "encoder", "token": 1}, ["source:1"]),
        ({"view": "overview", "token": 1}, []),
    ):
        window.go(**state)
        found = window.page.eval_on_selector_all("#strips .picked", "all => all.map(one => one.dataset.token)")
        assert found == framed


def test_the_links_of_the_overview_are_drawn_once(visit: Callable[..., Visit]) -> None:
    window, off = visit("translator"), {"decoder.blocks.0.feed_forward": [{"kind": "scale", "value": 0, "at": {}}]}
    window.go(view="overview", beside="before", changes=json.dumps(off))
    assert window.page.locator("#stage .beside > section").count() == 2
    assert window.page.locator("#stage .links").count() == 1


def test_the_address_holds_the_state(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="overview")
    window.page.click("#map >> text=Tokenization")
    window.drawn()
    for move, title in ((window.page.reload, "Tokenization"), (window.page.go_back, "Overview")):
        move()
        window.drawn()
        assert window.page.text_content("#stage h1") == title


def test_a_new_sentence_is_read(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="overview")
    window.page.fill("#sentence input", "a cat")
    window.page.keyboard.press("Enter")
    pieces = ["<start>", *(piece.replace(" ", "·") for piece, _ in opened("writer").tokenizers.target.pieces("a cat"))]
    window.drawn()
    assert window.page.locator("#strips .token").all_text_contents() == pieces


def test_a_thousand_tokens_can_be_explored(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="attention", text="a cat " * 490, stage="weights", layer=1)
    window.point(2, 1)
    for _ in range(3):
        window.page.keyboard.press("+")
    assert window.page.locator(".chosen-stage .zooms").count() == 1
    for view in ("heads", "lens"):
        window.go(view=view, text="a cat " * 490)


def test_closing_the_page_frees_the_trace(visit: Callable[..., Visit]) -> None:
    window = visit(explorer=explorer_of("translator"))  # its own window, which it closes
    with window.page.expect_response(lambda response: "api/milestones" in response.url):  # the last that it asks for
        window.go(text="a cat runs")
    assert window.explorer
    explorer = window.explorer

    def held() -> bool:
        with explorer.lock:
            return any(part.text == "a cat runs" for part in explorer.passes.parts.values())

    assert held()
    window.page.close(run_before_unload=True)
    end = time.monotonic() + PATIENCE
    while held():
        assert time.monotonic() < end, "the trace is still there"
        time.sleep(0.05)
