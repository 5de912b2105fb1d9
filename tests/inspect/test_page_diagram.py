"""The first screen in a real browser: the diagram of every family, what it plays, and the map of the same parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from browsing import Visit
from clearhead.inspect.trace import trace, vocabulary
from clearhead.inspect.web.explorer import Explorer
from explored_runs import KINDS, opened
from saved_runs import save
from tiny_runs import TEXT, tiny_run

OPENED = {"embedding": "Embedding", "attention": "Attention", "feed_forward": "Feed-forward", "norm": "Add & norm"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_has_its_boxes_and_its_output_at_the_top(kind: str, visit: Callable[..., Visit]) -> None:
    window, config = visit(kind), opened(kind).recipe.model
    window.go()
    stacks = 2 if kind == "translator" else 1
    kinds = window.page.eval_on_selector_all(".diagram .box", "all => all.map(one => one.dataset.kind)")
    assert kinds.count("attention") == 2 * stacks
    assert kinds.count("add") == 4 * stacks + (2 if kind == "translator" else 0)
    assert kinds.count("norm") == kinds.count("add") + (stacks if config.norm_order == "pre" else 0)
    assert kinds.count("position") == (stacks if config.position in ("sinusoidal", "learned") else 0)
    assert window.page.locator(".wires .residual").count() == kinds.count("add")
    assert window.page.locator(".wires .memory-head").count() == (2 if kind == "translator" else 0)
    assert window.page.locator(".outputs :is(.chance, canvas)").count() > 0


@pytest.mark.parametrize(("kind", "place"), [("translator", 1), ("writer", -1)])
def test_the_likeliest_next_token_is_the_librarys(kind: str, place: int, visit: Callable[..., Visit]) -> None:
    window, run = visit(kind), opened(kind)
    window.go(target="a cat" if kind == "translator" else "")
    logits = trace(run, TEXT, "a cat" if kind == "translator" else None)["head.logits"][0, place]
    best = vocabulary(run.tokenizers.target, len(logits))[int(logits.argmax())]
    first = window.page.locator(".chance").first
    assert (first.locator(".name").text_content() or "").strip("·") == best.replace(" ", "·").strip("·")
    shown = float((first.locator("output").text_content() or "").strip("<% "))
    assert shown == pytest.approx(100 * logits.softmax(-1).max().item(), abs=0.6)


@pytest.mark.parametrize("part", OPENED)
def test_a_box_opens_its_view_with_the_mouse_and_with_the_keyboard(part: str, visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(target="a cat")
    window.page.locator(f".diagram .box.{part}").last.click()
    window.drawn()
    assert window.page.text_content("#stage h1") == OPENED[part]
    window.page.go_back()
    window.drawn()
    window.page.locator(f".diagram .box.{part}").last.press("Enter")
    window.drawn()
    assert window.page.text_content("#stage h1") == OPENED[part]
    assert window.state("stack") == "decoder"


def test_a_chosen_token_shows_what_comes_after_it(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(target="a cat")
    assert "a" in window.page.text_content(".outputs .comes")
    window.page.locator(".lane-token.target").first.click()
    assert "<start>" in window.page.text_content(".outputs .comes")
    assert window.state("token") == "0"
    window.page.reload()
    window.drawn()
    assert "<start>" in window.page.text_content(".outputs .comes")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_play_writes_word_by_word(motion: str, visit: Callable[..., Visit]) -> None:
    window = visit("translator", reduced_motion=motion)
    window.go(target="a cat")
    unwritten = "document.querySelectorAll('.reading .unwritten').length"
    assert window.page.evaluate(unwritten) == 0
    play = "document.querySelector('.play').click()"
    moving = "document.querySelectorAll('.drop').length > 0"
    [_, said], *_, still = window.moments(
        play,
        (f"{unwritten} > 0", f"[{unwritten}, document.querySelector('.said').textContent]"),
        *([(moving, "true")] if motion == "no-preference" else []),
        (f"{unwritten} < found[0][0]", f"[!({moving}), {play}][0]"),
    )
    assert "encoder" in said  # the text comes first
    assert still or motion == "no-preference"
    assert window.page.evaluate(unwritten) == 0


def test_a_language_model_writes_on(visit: Callable[..., Visit]) -> None:
    window = visit("writer", reduced_motion="reduce")
    window.go()
    count = window.page.locator(".lane-token").count()
    assert count
    window.page.click(".play")
    window.until(f"document.querySelectorAll('.lane-token').length > {count}")
    assert int(window.state("write")) > 0
    window.until("document.querySelectorAll('.reading .target .fresh').length > 0")


def test_a_part_that_is_off_is_marked_after_the_change_alone(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    change = {"kind": "scale", "value": 0, "at": {}}
    head = {"kind": "scale", "value": 0, "at": {"head": [2]}}
    changes = {"encoder.blocks.1.feed_forward": [change], "encoder.blocks.0.attention.head_outputs": [head]}
    window.go(target="a cat", changes=json.dumps(changes), beside="before")
    before, after = (window.page.locator(f".beside > section >> nth={n}") for n in range(2))
    window.until("document.querySelectorAll('.beside > section .box').length > 60")
    assert (before.locator(".box.off").count(), after.locator(".box.off").count()) == (0, 1)
    assert (before.locator("canvas.off").count(), after.locator("canvas.off").count()) == (0, 1)


def test_of_a_deep_model_one_block_is_open(visit: Callable[..., Visit], tmp_path: Path) -> None:
    window = visit(explorer=Explorer([save(tiny_run("decoder-only", layers=5), tmp_path / "deep")]))
    window.go(layer=1)
    closed = window.page.locator(".diagram .box.closed .name")
    assert closed.all_text_contents() == ["Block 0", "Block 2", "Block 3", "Block 4"]
    closed.nth(2).click()
    window.until("location.hash.includes('layer=3')")
    window.drawn()
    assert closed.all_text_contents() == ["Block 0", "Block 1", "Block 2", "Block 4"]


@pytest.mark.parametrize("kind", ["translator", "classifier"])
def test_the_map_has_norms_and_additions_where_the_model_has_them(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind)
    window.go(view="attention")
    block = window.page.locator("#map .stack .block").first
    parts = block.locator("button, .plus").all_text_contents()  # from below
    sublayer = ["Self-attention", "+", "Norm", "Feed-forward", "+", "Norm"]
    pre = ["Norm", "Self-attention", "+", "Norm", "Feed-forward", "+"]
    assert parts == (pre if opened(kind).recipe.model.norm_order == "pre" else sublayer)
    assert window.page.locator("#map >> text=Final norm").count() == (1 if kind == "classifier" else 0)


def test_the_map_is_never_below_the_bar_at_the_foot(visit: Callable[..., Visit]) -> None:
    window = visit("translator", height=640)
    window.go(view="attention")
    bottom = "document.querySelector('#map').getBoundingClientRect().bottom"
    window.until(f"{bottom} <= document.querySelector('#learn').getBoundingClientRect().top + 1")


def test_the_diagram_fits_into_the_window(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(target="a cat")
    bottom = "document.querySelector('.lane-token').getBoundingClientRect().bottom"
    window.until(f"{bottom} <= document.querySelector('#learn').getBoundingClientRect().top")
    assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 1280


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_on_a_phone_every_box_is_large_enough_for_a_finger(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind, width=360, height=740, has_touch=True)
    window.go()
    heights = window.page.eval_on_selector_all(".diagram .box", "all => all.map(one => one.offsetHeight)")
    assert min(heights) >= 24
    assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 360


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("translator", "compared with the vector of every token"),
        ("guesser", "what could stand in its place"),
        ("classifier", "the probability of each class"),
        ("embedder", "similar vectors"),
    ],
)
def test_the_output_is_explained_as_this_model_computes_it(kind: str, says: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind)
    window.go()
    window.page.focus(".diagram .box.head")
    assert says in window.page.text_content(".texts .said")
