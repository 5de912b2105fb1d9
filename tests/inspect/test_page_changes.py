"""A change keeps the sentence: the same tokens before and after, and what the changed model would write beside them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from browsing import Visit, expected_next, probabilities
from clearhead.inspect.answer import importance
from clearhead.inspect.patch import from_json, knock_out
from clearhead.inspect.roles import alignment, head_roles
from clearhead.inspect.trace import trace
from explored_runs import opened
from tiny_runs import TEXT

CROSS_OFF = {"decoder.blocks.1.cross_attention": [{"kind": "scale", "value": 0, "at": {}}]}


@pytest.mark.parametrize("part", ["attention", "cross_attention"])
def test_any_row_of_a_mask_of_the_decoder_can_be_clicked(part: str, visit: Callable[..., Visit]) -> None:
    window, traced = visit("translator"), trace(opened("translator"), TEXT)  # the model writes the target itself
    name = f"decoder.blocks.0.{part}"
    window.go(view="attention", stack="decoder", part=part, layer=0, head=1, stage="mask")
    window.point(3, 2)
    window.page.keyboard.press("Enter")
    window.drawn()
    change = {"kind": "scale", "value": 0, "at": {"query": [3], "key": [2]}}
    assert json.loads(window.state("changes")) == {f"{name}.mask": [change]}
    weights = {"view": "attention", "stack": "decoder", "part": part, "layer": 0, "changes": window.state("changes")}
    window.go(**weights, head=1)
    assert window.point(3, 2) == 0.0
    window.go(**weights, head=2)
    expected = traced.again(from_json({f"{name}.mask": [change]}))[f"{name}.weights"][0, 2, 3, 1]
    assert window.point(3, 1) == pytest.approx(expected.item(), abs=1e-6)


def test_before_and_after_are_about_the_same_tokens(visit: Callable[..., Visit]) -> None:
    window, run = visit("translator"), opened("translator")
    before = trace(run, TEXT)
    after = before.again({"decoder.blocks.1.cross_attention": knock_out()})
    window.go(view="next", token=2, beside="before", changes=json.dumps(CROSS_OFF))
    script = """all => all.map(one => [...one.querySelectorAll('[data-id]')].map(
        row => [row.dataset.id, row.querySelector('output').dataset.probability]
    ))"""
    shown = window.page.eval_on_selector_all(".next-words", script)
    for rows, traced in zip(shown, (before, after), strict=True):
        expected = traced["head.logits"][0, 2].softmax(-1)
        assert all(float(p) == pytest.approx(expected[int(i)].item(), abs=1e-5) for i, p in rows)
    tokens = window.page.locator("#strips .target").all_text_contents()
    assert len(tokens) == len(before.tokens["target"])


def test_the_effect_of_a_change_is_told(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="heads", beside="before", changes=json.dumps(CROSS_OFF))
    window.until("document.querySelector('#changes .effect .odds')")
    requests = "performance.getEntriesByType('resource').map(({name}) => name.match(/api.(\\w+)/)?.[1])"
    window.until(f"{requests}.includes('effect')")
    asked = window.page.evaluate(requests)
    assert asked.index("effect") > asked.index("tensors")  # the view does not wait for the text that is written
    effect = explorer_effect(window)
    assert "%" in window.page.text_content("#changes .odds")
    assert effect["writes"] in window.page.text_content("#changes .effect")


def explorer_effect(window: Visit) -> dict[str, Any]:
    assert window.explorer
    changes = json.dumps(CROSS_OFF, separators=(",", ":"))
    found = window.explorer.answer(
        "trace", {"run": "0", "text": TEXT, "target": "", "snapshot": "", "changes": changes}
    )
    assert isinstance(found, dict)
    effect = window.explorer.answer("effect", {"trace": found["id"]})
    assert isinstance(effect, dict)
    return effect


def test_a_step_of_training_says_what_it_would_write(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention", snapshot="7")
    window.until("document.querySelector('#changes .effect .odds')")
    assert window.page.text_content("#changes strong") == "Step 7 of training:"
    assert "write" in window.page.text_content("#changes .effect")


def test_heads_are_named_and_coloured_by_their_importance(visit: Callable[..., Visit]) -> None:
    window, traced = visit("translator"), trace(opened("translator"), TEXT)
    window.go(view="heads")
    name = "decoder.blocks.1.cross_attention"
    window.until(f"document.querySelector('.whole[data-attention=\"{name}\"]').textContent")
    measured = importance(traced, name)
    shown = window.page.locator(f"figure[data-attention='{name}'] .importance").all_text_contents()
    shown.append(window.page.text_content(f".whole[data-attention='{name}']"))
    factors = [float(text.strip("<× ")) for text in shown]
    assert factors == pytest.approx([math.exp(change) for change in measured], abs=0.006, rel=1e-3)
    roles = head_roles(traced, name, alignment(traced))
    said = window.page.locator(f"figure[data-attention='{name}'] .role").all_text_contents()
    assert [text.rpartition(" ")[0].rpartition(" ")[0] for text in said] == [role.name for role in roles]
    window.until("document.querySelectorAll('#map button.measured').length === 10")  # every sublayer
    window.go(view="attention", stack="decoder", layer=1, part="cross_attention", head=2)
    window.until("document.querySelector('.chosen-stage .told').textContent.includes('as likely')")
    assert "as likely" in window.page.get_attribute(f"#map [data-name='{name}']", "title")


def test_the_difference_of_two_is_drawn(visit: Callable[..., Visit]) -> None:
    window, before = visit("translator"), trace(opened("translator"), TEXT)
    after = before.again({"decoder.blocks.0.cross_attention": knock_out()})
    off = {"decoder.blocks.0.cross_attention": [{"kind": "scale", "value": 0, "at": {}}]}
    state = {"stack": "decoder", "layer": 1, "beside": "before", "changes": json.dumps(off)}
    window.go(view="feedforward", **state)
    window.page.click("#stage .how >> text=Difference")
    window.drawn()
    assert window.page.locator("#stage .beside").count() == 0
    name = "decoder.blocks.1.feed_forward.up"
    window.page.focus(f"#stage canvas[aria-label^='{name}:']")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        window.page.keyboard.press(key)
    shown = window.page.locator(f".matrix:has(canvas[aria-label^='{name}:']) .cell").text_content()
    expected = (after[name] - before[name])[0, 1, 1].item()
    assert float(shown.split()[-1].replace("−", "-")) == pytest.approx(expected, abs=2e-4)
    window.go(view="heads", beside="text", other="a", difference="yes")
    assert "no difference to draw" in window.page.text_content("#stage")


def test_milestones_of_training_are_marked(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention")
    window.until("document.querySelector('#learn').dataset.milestones")
    assert window.explorer
    found = window.explorer.answer("milestones", {"trace": window.page.evaluate(TRACE_ID)})
    assert isinstance(found, dict)
    steps = {milestone["step"] for milestone in found["found"]}
    window.until(f"document.querySelectorAll('#learn .milestone').length === {len(steps)}")
    for mark in window.page.locator("#learn .milestone").all():
        assert mark.get_attribute("aria-label").startswith("Step ")


TRACE_ID = """() => fetch(performance.getEntriesByType('resource').map(one => one.name).find(
    name => name.includes('api/trace?'))).then(answer => answer.json()).then(trace => trace.id)"""


def test_a_head_is_knocked_out_and_comes_back(visit: Callable[..., Visit]) -> None:
    window, run = visit("translator"), opened("translator")
    name = "decoder.blocks.1.cross_attention.head_outputs"
    window.go(view="heads", target="a cat", token=1)
    window.page.click("[aria-label='Switch off decoder block 1 cross-attention head 3']")
    window.drawn()
    assert window.page.is_visible("#changes")
    assert window.page.locator("#stage .beside > section").count() == 2  # before, and after
    window.page.click("#map .head")
    window.drawn()
    changed = trace(run, TEXT, "a cat", {name: knock_out(head=3)})
    assert max(probabilities(window).values()) == pytest.approx(expected_next(changed).max().item(), abs=1e-5)
    assert name in window.page.url
    window.page.click("#changes >> text=Undo all")
    window.drawn()
    assert not window.page.is_visible("#changes")
    unchanged = expected_next(trace(run, TEXT, "a cat"))
    assert max(probabilities(window).values()) == pytest.approx(unchanged.max().item(), abs=1e-5)


@pytest.mark.parametrize(
    ("state", "press", "name"),
    [
        ({"view": "position", "stack": "encoder"}, "text=Reverse them", "encoder.position"),
        ({"view": "attention", "stack": "encoder", "stage": "queries"}, "text=Change", "attention.query.weight"),
        ({"view": "feedforward", "stack": "encoder"}, "text=Switch off this feed-forward", "feed_forward"),
    ],
)
def test_positions_weights_and_layers_can_be_changed(
    state: dict[str, str], press: str, name: str, visit: Callable[..., Visit]
) -> None:
    window = visit("translator")
    window.go(**state)
    window.page.click(f"#stage >> {press}")
    window.drawn()
    assert window.page.get_attribute("#changes .change", "title").endswith(name)


def test_a_pair_of_tokens_can_be_masked(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention", stack="encoder", stage="mask", target="a cat")
    window.point(1, 2)
    window.page.keyboard.press("Enter")
    window.drawn()
    mask = "encoder.blocks.0.attention.mask"
    assert window.page.get_attribute("#changes .change", "title") == mask
    assert re.fullmatch(
        r"\w+, block \d, [\w-]+, mask, query \d+, key \d+: masked✕", window.page.text_content("#changes .change")
    )
    window.go(view="attention", stack="encoder", stage="weights", target="a cat", changes=json.dumps({mask: [FORBID]}))
    assert window.point(1, 2) == 0.0


FORBID = {"kind": "scale", "value": 0, "at": {"query": [1], "key": [2]}}


def test_a_click_is_answered_before_the_model_is(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="heads")
    assert window.explorer
    with window.explorer.lock:  # a pass that takes as long as we like
        window.page.click("[aria-label='Switch off decoder block 1 cross-attention head 3']")
        assert "head 3" in window.page.text_content("#changes .change")
        assert window.page.locator("#stage[aria-busy] .heads").count() > 0  # the old picture stays meanwhile
    window.drawn()
    assert window.page.locator("#stage .beside > section").count() == 2
