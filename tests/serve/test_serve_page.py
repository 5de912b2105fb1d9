"""The page of the server in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clearhead.decode.translate import translate
from clearhead.runs import Run
from patience import PATIENCE
from served_runs import served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(named_runs: dict[str, Run]) -> Iterator[str]:
    with served(list(named_runs.values())) as address:
        yield address


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page in a new window; afterwards nothing may have gone wrong in it."""
    window = browser.new_context()
    window.set_default_timeout(1000 * PATIENCE)
    page = window.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(address)
    yield page
    window.close()
    assert errors == []


def say(page: Any, name: str, text: str) -> Any:
    page.select_option("#model", name)
    page.fill("#text", text)
    page.press("#text", "Enter")
    page.wait_for_selector("#send:not([hidden])")
    return page.locator(".said.model").last


def test_a_text_is_translated(page: Any, named_runs: dict[str, Run]) -> None:
    expected = translate(named_runs["translator"], ["the red car is fast"])[0][0].text
    assert say(page, "translator", "the red car is fast").text_content() == expected


def test_nothing_can_be_sent_before_the_runs_are_known(page: Any) -> None:
    waiting: list[Any] = []
    page.route("**/ready", lambda route: waiting.append(route))
    with page.expect_request("**/ready"):
        page.reload()
    page.fill("#text", "a cat")
    page.press("#text", "Enter")
    page.locator("#send").dispatch_event("click")
    assert page.input_value("#text").strip() == "a cat"
    assert page.locator(".said").count() == 0
    waiting[0].continue_()
    assert "%" in say(page, "classifier", "a cat").text_content()


def test_a_prompt_is_continued_a_question_answered_and_a_text_classified(page: Any) -> None:
    assert say(page, "writer", "a cat").inner_text().startswith("a cat")
    say(page, "talker", "a cat")
    assert "%" in say(page, "classifier", "a cat").inner_text()
    assert "numbers" in say(page, "embedder", "a cat").inner_text()


def test_another_run_ends_an_answer_and_begins_another_conversation(page: Any) -> None:
    sent: list[Any] = []
    page.route("**/v1/chat/completions", lambda route: sent.append(route.request.post_data_json))  # no answer comes
    for text in ("a cat", "a dog"):
        page.select_option("#model", "talker")
        page.fill("#text", text)
        page.press("#text", "Enter")
        page.wait_for_selector("#stop:not([hidden])")
        page.select_option("#model", "classifier")
        page.wait_for_selector("#send:not([hidden])")
    page.unroute_all()
    assert [[each["content"] for each in asked["messages"]] for asked in sent] == [["a cat"], ["a dog"]]


def test_the_api_is_shown(page: Any) -> None:
    page.goto(page.url + "docs")
    page.locator("summary", has_text="POST /generate").click()
    fields = page.locator("details[open] pre").first.inner_text()
    assert "temperature: number = 0.8" in fields
    assert "stop: list of string = []" in fields
    page.set_viewport_size({"width": 390, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    widths = page.evaluate(
        "[...document.querySelectorAll('details[open] pre')].map((e) => e.scrollWidth - e.clientWidth)"
    )
    assert set(widths) == {0}, "lines are cut off"


def test_the_form_stays_in_view_below_a_long_text(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 400})
    for _ in range(8):
        say(page, "classifier", "a cat")
    assert page.locator("#send").bounding_box()["y"] < 400
    last = page.locator(".said").last.bounding_box()
    assert last["y"] + last["height"] <= page.locator("#form").bounding_box()["y"]
