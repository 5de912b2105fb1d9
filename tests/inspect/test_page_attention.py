"""The view of attention in a real browser: the matrix in sight, and one row of it, step by step, in one picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from browsing import Visit
from clearhead.inspect.trace import Trace, trace
from explored_runs import opened
from tiny_runs import TEXT

CROSS = {"view": "attention", "stack": "decoder", "part": "cross_attention", "layer": 1, "head": 2}
CAUSAL = {"view": "attention", "stack": "decoder", "part": "attention", "layer": 0, "head": 1}


def numbers(window: Visit, kind: str) -> list[float]:
    shown = window.page.locator(f".attention-row .{kind} output").all_text_contents()
    return [float(text.replace("−", "-").replace("≈ 0", "0").strip(" %")) for text in shown]


def expected(traced: Trace, state: dict[str, object], tensor: str, row: int) -> list[float]:
    name = f"{state['stack']}.blocks.{state['layer']}.{state['part']}.{tensor}"
    return traced[name][0, state["head"], row].tolist()


@pytest.mark.parametrize("state", [CROSS, CAUSAL])
def test_a_row_has_the_librarys_scores_and_weights(state: dict[str, object], visit: Callable[..., Visit]) -> None:
    window, traced = visit("translator"), trace(opened("translator"), TEXT, "a cat")
    window.go(**state, target="a cat", token=1)
    seen = len(traced.tokens["source"]) if state is CROSS else 2
    assert numbers(window, "score") == pytest.approx(expected(traced, state, "scores", 1)[:seen], abs=0.006)
    assert numbers(window, "weight") == pytest.approx(
        [100 * w for w in expected(traced, state, "weights", 1)[:seen]], abs=0.6
    )
    filled = window.page.locator(".attention-row .weight.strong").count()
    assert filled == sum(w > 0.55 for w in expected(traced, state, "weights", 1)[:seen])
    masked = 0 if state is CROSS else len(traced.tokens["target"]) - 2
    assert (
        window.page.locator(".attention-row .hatched").count() == 4 * masked
    )  # products, score, weight, part of the sum


def test_heads_that_share_keys_and_values_are_drawn(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="attention", head=3, token=2)
    state = {"stack": "decoder", "layer": 0, "part": "attention", "head": 3}
    shown = expected(trace(opened("writer"), TEXT), state, "weights", 2)[:3]
    assert numbers(window, "weight") == pytest.approx([100 * w for w in shown], abs=0.6)


def test_a_click_on_the_matrix_chooses_the_row(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(**CROSS, target="a cat", token=1)
    window.point(2, 1)
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('.row-picture').dataset.row === '2'")
    assert window.state("token") == "2"
    picked = window.page.eval_on_selector_all("#strips .picked", "all => all.map(one => one.dataset.token)")
    assert picked == ["target:2"]
    window.page.locator("#strips .target").first.click()
    window.until("document.querySelector('.row-picture').dataset.row === '0'")


def test_the_matrix_the_controls_and_the_row_are_above_the_fold(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    for state in (CROSS, CAUSAL):
        window.go(**state, target="a cat")
        bottom = "document.querySelector('.attention-row').getBoundingClientRect().bottom"
        window.until(f"{bottom} <= document.querySelector('#learn').getBoundingClientRect().top")
        for part in (".chosen-stage canvas", ".stages", ".row-picture"):
            assert window.page.locator(part).first.is_visible()


def test_the_steps_appear_one_by_one_once_and_again_on_demand(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(**CROSS, target="a cat")
    animated = "document.querySelectorAll('.attention-row.animated').length"
    assert window.page.evaluate(animated) == 1
    window.page.keyboard.press("[")
    window.drawn()
    assert window.page.evaluate(animated) == 0
    window.page.click("[aria-label='Show the steps again, one by one']")
    assert window.page.evaluate(animated) == 1


def test_with_reduced_motion_the_steps_are_there_at_once(visit: Callable[..., Visit]) -> None:
    window = visit("translator", reduced_motion="reduce")
    window.go(**CROSS, target="a cat")
    assert window.page.locator(".attention-row.animated").count() == 0
    assert window.page.locator(".attention-row .whole canvas").is_visible()
