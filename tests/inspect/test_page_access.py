"""The page on a phone, in the dark, without motion, and with the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from browsing import MORE_VIEWS, VIEWS, Visit, explorer_of, texts

TOO_SMALL = """() => {
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const {parentElement: at, textContent: text} = walk.currentNode, svg = at.closest("svg");
        if (!text.trim() || !at.checkVisibility() || at.closest("math")) continue;
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
        if (scale * parseFloat(getComputedStyle(at).fontSize) < 10.9) found.push(`text ${text}`);
    }
    const inDiagram = ".box, .lane-token, .milestone";  // their parts are on the map too, in a finger's size
    for (const at of document.querySelectorAll("button, summary, select, #sentence input")) {
        const {width, height} = at.getBoundingClientRect();
        if (at.checkVisibility() && Math.min(width, height) < 31.5 && !at.matches(inDiagram)) found.push(at.outerHTML);
    }
    return found;
}"""


@pytest.mark.parametrize("kind", ["translator", "classifier"])
def test_a_phone_shows_every_view_without_scrolling_sideways(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind, width=390, height=844, has_touch=True)
    for view in VIEWS + MORE_VIEWS[kind]:
        window.go(view=view)
        assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 390, view
        assert window.page.evaluate(TOO_SMALL) == [], view


def test_a_chosen_view_begins_at_its_top_and_closes_a_phones_map(visit: Callable[..., Visit]) -> None:
    window = visit("translator", width=390, height=844, has_touch=True)
    window.go(view="overview")
    window.page.click("#map summary")
    window.page.evaluate("scrollTo(0, 1e6)")
    window.page.locator("#map button", has_text="Alignment").dispatch_event("click")
    window.drawn()
    assert window.page.text_content("#stage h1") == "Alignment"
    assert not window.page.evaluate("document.querySelector('#map details').open")
    assert window.page.evaluate("document.querySelector('#stage h1').getBoundingClientRect().top") > 0
    assert "layer=1" in window.page.url  # the last block


def test_contributions_are_narrower_on_a_phone(visit: Callable[..., Visit]) -> None:
    widths = []
    for width in (1280, 390):
        window = visit("translator", width=width)
        window.go(view="lens")
        columns = "getComputedStyle(document.querySelector('.terms.wide .term')).gridTemplateColumns"
        widths.append(float(window.page.evaluate(columns).split("px")[0]))
    assert widths[1] <= 9.5 * 16 < widths[0]


def test_with_reduced_motion_nothing_moves_while_the_page_is_busy(visit: Callable[..., Visit]) -> None:
    for motion, animation in (("reduce", "none"), ("no-preference", "under-way")):
        window = visit("translator", reduced_motion=motion)
        window.go(view="overview")
        window.page.evaluate("document.querySelector('#stage').setAttribute('aria-busy', 'true')")
        bar = "getComputedStyle(document.querySelector('#stage'), '::before').animationName"
        assert window.page.evaluate(bar) == animation


def test_dark_colours_are_kept(visit: Callable[..., Visit]) -> None:
    window = visit("translator", color_scheme="dark")
    window.go(view="attention")
    assert window.page.get_attribute("html", "data-theme") == "dark"
    window.page.click("[aria-label='Light colours']")
    window.page.wait_for_selector("[aria-label='Dark colours']")
    window.drawn()
    window.page.reload()
    window.drawn()
    assert window.page.get_attribute("html", "data-theme") == "light"


def test_the_tour_and_the_glossary_can_be_walked_with_keys(visit: Callable[..., Visit]) -> None:
    window = visit("translator", reduced_motion="reduce")
    window.go(view="overview")
    window.page.keyboard.press("?")
    assert "Residual stream" in window.page.text_content("dialog")
    window.page.keyboard.press("Escape")
    window.page.wait_for_selector("dialog", state="detached")  # it takes the keys until then
    window.page.keyboard.press("t")
    stops = int(re.search(r"of (\d+)", window.page.text_content("#tour small")).group(1))
    for stop in range(stops):
        window.page.wait_for_selector(f"#tour small:text-is('{stop + 1} of {stops}')")
        window.page.wait_for_selector("#tour .strong:focus")
        window.page.keyboard.press("Enter")
    window.page.wait_for_selector("#tour", state="detached")


def test_keys_wait_for_the_run(visit: Callable[..., Visit]) -> None:
    window = visit(explorer=explorer_of("translator"))
    held: list[Any] = []
    window.page.route("**/api/run*", lambda route: held.append(route))
    with window.page.expect_request("**/api/run*"):
        window.page.goto(f"{window.address}#view=attention")
    for key in "]}t?":
        window.page.keyboard.press(key)
    assert window.page.locator("dialog, #tour").count() == 0
    held[0].continue_()
    window.drawn()
    assert window.wrong == []


def test_a_matrix_can_be_pointed_at_before_it_is_painted(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go()
    window.page.evaluate("""async () => {
        const { matrix } = await import("./matrix.js");
        const box = matrix({ rows: 1, columns: 2, values: new Float32Array(2), label: "new" });
        const canvas = box.querySelector("canvas");
        for (const name of ["pointermove", "pointerdown"]) canvas.dispatchEvent(new PointerEvent(name));
    }""")
    assert window.wrong == []


def test_keys_change_head_and_block(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention")
    window.page.keyboard.press("]")
    window.drawn()
    assert "head 1" in window.page.text_content("#stage .chosen-stage h2")
    window.page.keyboard.press("}")
    window.drawn()
    assert "block 1" in window.page.text_content("#stage h1 + small")


def test_probabilities_of_a_beam_are_shown_on_a_phone(visit: Callable[..., Visit]) -> None:
    window = visit("translator", width=390, height=844, has_touch=True)
    window.go(view="beam", width=2)
    odds = texts(window, ".tree .odds")
    assert len(odds) == window.page.locator(".tree .node").count()
    assert all(text.endswith("%") for text in odds)
    window.go(view="lens")
    bars = window.page.eval_on_selector_all(".terms.wide i", "all => all.map(one => one.offsetWidth)")
    assert max(bars) > 40


def rgb(text: str) -> list[int]:
    return [int(float(part)) for part in re.findall(r"[\d.]+", text)[:3]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_signs_have_other_colours_than_source_and_target(scheme: str, visit: Callable[..., Visit]) -> None:
    window = visit("translator", color_scheme=scheme)
    window.go(view="embedding", stack="encoder")
    ends = window.page.eval_on_selector_all(
        ".ramp b", "all => [all[0], all.at(-1)].map(one => getComputedStyle(one).backgroundColor)"
    )
    (red, green, blue), (red2, green2, blue2) = map(rgb, ends)
    assert min(red, blue) > green  # purple below 0
    assert green2 > max(red2, blue2)  # green above
