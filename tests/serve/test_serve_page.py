"""The page of the server in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from clearhead.decode.translate import translate
from clearhead.runs import Run
from served_runs import served

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture(scope="module")
def page(named_runs: dict[str, Run]) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no browser on the PATH")
    with served(list(named_runs.values())) as address, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(address)
        yield page
        assert errors == []
        browser.close()


def say(page: Any, name: str, text: str) -> Any:
    page.select_option("#model", name)
    page.fill("#text", text)
    page.press("#text", "Enter")
    page.wait_for_selector("#send:not([hidden])")
    return page.locator(".said.model").last


def test_a_text_is_translated(page: Any, named_runs: dict[str, Run]) -> None:
    expected = translate(named_runs["translator"], ["the red car is fast"])[0][0].text
    sync_api.expect(say(page, "translator", "the red car is fast")).to_have_text(expected)


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
    sync_api.expect(page.locator("summary", has_text="POST /generate")).to_be_visible()
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
    page.goto(page.url.removesuffix("docs"))
    page.wait_for_selector("#model option", state="attached")
    for _ in range(8):
        say(page, "classifier", "a cat")
    assert page.locator("#send").bounding_box()["y"] < 400
    last = page.locator(".said").last.bounding_box()
    assert last["y"] + last["height"] <= page.locator("#form").bounding_box()["y"]
