"""The tour is a lesson about the model that is open: it lights up what it is about, asks, and shows what is true."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from browsing import NEXT_FRAME, Visit, explorer_of
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.facts import stack_of
from clearhead.inspect.web.pictures import neighbours
from explored_runs import folder_of, opened
from tiny_runs import TEXT

OVERLAP = """() => {
    const [one, other] = ["#lesson", "#body"].map(id => document.querySelector(id).getBoundingClientRect());
    return one.top < other.bottom - 1 && other.top < one.bottom - 1;
}"""


def start(window: Visit, text: str = TEXT) -> int:
    window.go(view="overview", text=text)
    window.page.keyboard.press("t")
    window.page.wait_for_selector("#tour")
    return int(window.page.text_content("#tour small").split()[-1])


def take(window: Visit, number: int) -> str:
    """Wait until a stop has lit up what it is about: its title."""
    window.page.wait_for_selector(f"#tour small:text('{number} of')")
    window.until("document.querySelector('.shown-by-tour')")
    window.drawn()
    return window.page.text_content("#tour h2")


def answer(window: Visit, choice: str = "") -> str:
    """Answer the question of a stop, if it has one: what it shows then."""
    window.page.wait_for_selector("#tour .question button")
    options = window.page.locator("#tour .question button")
    (options.get_by_text(choice, exact=True) if choice else options).first.click()
    window.page.wait_for_selector("#tour .answer")
    return window.page.text_content("#tour .answer")


@pytest.mark.parametrize("kind", ["writer", "embedder"])
def test_every_stop_lights_up_an_element_that_can_be_seen(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind, reduced_motion="reduce", color_scheme="dark")
    count = start(window)
    titles = []
    for number in range(1, count + 1):
        titles.append(take(window, number))
        said = window.page.text_content("#tour")
        assert "darker" not in said
        assert window.page.locator(".shown-by-tour:visible").count() == 1
        if "order" in titles[-1]:
            assert "nothing is added" in said  # the positions of this model are rotary
        window.page.click("#tour .strong")
    assert titles[1:3] == ["Text becomes tokens", "A token becomes a vector"]
    assert len(set(titles)) == count
    assert ("The order of the tokens" in titles) == (kind == "writer")
    window.page.wait_for_selector("#tour", state="detached")
    assert window.page.locator(".shown-by-tour").count() == 0


def test_predictions_are_asked_for_and_then_shown(visit: Callable[..., Visit]) -> None:
    window, traced = visit("translator", reduced_motion="reduce"), trace(opened("translator"), TEXT)
    for number in range(1, start(window) + 1):
        title = take(window, number)
        if title == "The order of the tokens":
            assert "is added to each token's vector" in window.page.text_content("#tour")
        if title == "Queries and keys":
            weights = traced["encoder.blocks.0.attention.weights"][0, 0, 2]
            said = answer(window, traced.tokens["source"][int(weights.argmax())].replace(" ", "·"))
            assert said.startswith("Yes.")
            assert f"{100 * weights.max().item():.0f} %" in said
        if title == "Switch it off":
            answer(window)
            window.until("document.querySelector('#changes .effect.shown-by-tour .odds')")
            assert "cross_attention" in window.state("changes")
            window.page.click("#tour .strong")
            window.until("!location.hash.includes('changes')")  # the next stop switches it on again
            return
        window.page.click("#tour .strong")
    pytest.fail("no stop switches anything off")


def test_on_a_phone_it_covers_nothing(visit: Callable[..., Visit]) -> None:
    window = visit("translator", width=390, height=844, has_touch=True, reduced_motion="reduce")
    start(window)
    for number in range(1, 5):
        take(window, number)
        assert not window.page.evaluate(OVERLAP)
        assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 390
        window.page.click("#tour .strong")


def test_on_a_phone_the_lesson_and_what_it_is_about_are_in_sight(visit: Callable[..., Visit]) -> None:
    window = visit("translator", width=390, height=844, has_touch=True, reduced_motion="reduce")
    for number in range(1, start(window) + 1):
        title = take(window, number)
        question, shown = (
            window.page.evaluate(f"document.querySelector('{each}').getBoundingClientRect().toJSON()")
            for each in ("#tour .told", ".shown-by-tour")
        )
        assert 0 <= question["top"] < 200, title
        if title != "A token becomes a vector":  # its neighbours come after two pictures
            assert 0 <= shown["top"] < 844, title
        window.page.click("#tour .strong")


def test_of_a_large_model_the_tour_shows_the_button_that_measures_heads(
    visit: Callable[..., Visit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.inspect.web.explorer.MOST_AT_ONCE", 0)
    window = visit("translator", explorer=Explorer([folder_of("translator", 0)]), reduced_motion="reduce")
    number = 1
    start(window)
    while take(window, number) != "Many heads":
        window.page.click("#tour .strong")
        number += 1
    assert "Under each head" not in window.page.text_content("#tour")
    assert window.page.text_content(".shown-by-tour button") == "Measure the importance of every head"


def test_a_question_about_vectors_is_about_the_word_with_the_most_similar_neighbour(
    visit: Callable[..., Visit],
) -> None:
    window, run = visit("translator", reduced_motion="reduce"), opened("translator")
    text = "fast is the red car"
    start(window, text)
    window.page.click("#tour .strong")
    window.page.click("#tour .strong")
    take(window, 3)
    window.page.wait_for_selector("#tour .question button")
    near = neighbours(stack_of(run, "encoder"), run.tokenizers.source, trace(run, text).ids["source"])
    words = {run.tokenizers.source.piece(int(number)): found[0] for number, found in near.items()}
    best = max((word for word in words if len(word.strip()) > 2), key=lambda word: words[word][1])
    assert f"“{best.replace(' ', '·')}”" in window.page.text_content("#tour .question")


def test_a_text_that_is_refused_has_no_tour(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.page.goto(f"{window.address}#text={'a' * 20_001}")
    window.page.wait_for_selector("#stage .error")
    with window.page.expect_console_message(lambda said: "Failed to load resource" in said.text):
        window.page.keyboard.press("t")
    window.page.evaluate(NEXT_FRAME)
    assert not window.page.locator("#tour").count()
    wrong = [each for each in window.wrong if "Failed to load resource" not in each]
    window.wrong.clear()
    assert wrong == []


def test_the_framed_token_of_an_alignment_is_a_word(visit: Callable[..., Visit]) -> None:
    window = visit("translator", reduced_motion="reduce")
    number = 1
    start(window)
    while not take(window, number).startswith("Cross-attention"):
        window.page.click("#tour .strong")
        number += 1
    answer(window)
    window.until("document.querySelector('g.shown-by-tour[data-token=\"target:1\"]')")


def test_a_slow_model_is_waited_for(visit: Callable[..., Visit]) -> None:
    window = visit(explorer=explorer_of("translator"), reduced_motion="reduce")
    window.page.clock.install()
    start(window)
    take(window, 1)
    assert window.explorer
    with window.explorer.lock:  # the model takes as long as we like
        window.page.click("#tour .strong")
        window.page.clock.run_for(60_000)
        assert window.page.locator(".shown-by-tour").count() == 0
    take(window, 2)
