"""Single views of the page: what they show is right, has words to it, and can be read on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from browsing import Visit, texts
from clearhead.inspect.decoding import MOST_IN_WHOLE_PASSES
from clearhead.inspect.lens import saliency
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from explored_runs import opened
from saved_runs import save
from tiny_runs import TEXT, tiny_run


def test_the_most_active_neurons_are_those_with_the_largest_values(visit: Callable[..., Visit]) -> None:
    window = visit("guesser")  # GELU, whose floor is below 0
    window.go(view="feedforward", stack="encoder", layer=0, token=2)
    row = trace(opened("guesser"), TEXT)["encoder.blocks.0.feed_forward.inner"][0, 2]
    values, neurons = row.topk(12)
    shown = window.page.locator(".most-active .bar")
    assert texts(window, ".most-active .bar span") == [f"neuron {n}" for n in neurons.tolist()]
    assert float(shown.nth(0).locator("output").text_content().replace("−", "-")) == pytest.approx(
        values[0].item(), abs=6e-4
    )
    assert shown.nth(0).locator("i").get_attribute("class") == "plus"


def test_what_a_tensor_is_computed_from_can_be_opened(visit: Callable[..., Visit], tmp_path: Path) -> None:
    run = tiny_run("encoder-decoder", position="rotary", norm_order="pre")
    window = visit(explorer=Explorer([save(run, tmp_path / "rotary")]))
    for state, parent, title in (
        ({"view": "attention", "stage": "queries"}, "decoder.blocks.0.attention.query", "Attention"),
        ({"view": "next", "token": 1}, "decoder.norm", "Residual stream"),
        ({"view": "attention", "part": "cross_attention", "stage": "keys"}, "encoder.norm", "Residual stream"),
    ):
        window.go(stack="decoder", **state)
        window.page.click(f"#inspector .parents >> text='{parent}'")
        window.drawn()
        assert window.page.text_content("#stage h1") == title
        window.until(f"document.querySelector('#inspector .name-path').textContent === '{parent}'")


def test_watching_it_learn_can_be_paused_and_dragged(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="next", token=1)
    assert any("loss" in text for text in texts(window, ".axis-names b"))
    assert "step 20" in texts(window, ".axis-names span")
    replay = "document.querySelector('.replay')"
    seen = ("location.hash.includes('snapshot=7')", f"[{replay}.textContent, {replay}.click()][0]")
    [title] = window.moments(f"{replay}.click()", seen)
    assert "Pause" in title
    assert "Watch it learn" in window.page.text_content(".replay")
    window.drawn()
    window.page.wait_for_timeout(1200)  # longer than a step of the player
    assert window.state("snapshot") == "7"
    box = window.page.locator("#learn svg").bounding_box()
    window.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    window.page.mouse.down()
    for part in (0.6, 0.3, 0.02):
        window.page.mouse.move(box["x"] + box["width"] * part, box["y"] + 20)
        window.page.wait_for_timeout(100)
    window.until("document.querySelector('#learn input').value === '0'")
    window.page.mouse.up()
    window.until("location.hash.includes('snapshot=0')")
    window.drawn()
    assert window.page.input_value("#learn input") == "0"


def test_a_formula_ends_in_its_result_inside_the_panel(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention", stack="encoder", stage="scores")
    value = window.point(2, 1)
    result = window.page.locator("#cell .result")
    assert float(result.text_content().strip("= ").replace("−", "-")) == pytest.approx(value, abs=1e-3)
    edges = window.page.evaluate(
        "['#cell .result', '#inspector'].map(one => document.querySelector(one).getBoundingClientRect().right)"
    )
    assert edges[0] <= edges[1]


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_shuffled_positions_are_seen(kind: str, visit: Callable[..., Visit]) -> None:
    window = visit(kind)
    stack = "decoder" if kind == "writer" else "encoder"
    window.go(view="position", stack=stack)
    window.page.click("#stage >> text=Shuffle them")
    window.drawn()
    pictures = window.page.eval_on_selector_all(".own-positions canvas", "all => all.map(one => one.toDataURL())")
    assert len(pictures) == 2
    assert pictures[0] != pictures[1]
    assert window.page.locator("#stage h2 >> text=The first positions").count() == 1  # they are not changed
    inside = """all => all.every(one => one.getBBox().x >= 0 &&
        one.getBBox().x + one.getBBox().width <= one.ownerSVGElement.viewBox.baseVal.width)"""
    assert window.page.eval_on_selector_all(".columns svg text", inside)


def test_views_have_words(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="embedding", stack="encoder")
    named = texts(window, "#stage .landmark")
    assert named
    window.go(view="residual", stack="decoder")
    stream = window.page.get_attribute("#stage canvas", "aria-label")
    assert stream.startswith("norm of each token's vector")
    assert "last layer is at the top" in window.page.text_content("#stage")
    assert texts(window, "#stage .bar button")[0] == "block 1, feed-forward"
    window.go(view="lens")
    parts = texts(window, ".terms.wide button")
    assert all("." not in part and "decoder" not in part for part in parts)
    assert any(re.fullmatch(r"block \d, (cross-)?attention head \d", part) for part in parts)
    window.go(view="tokenization", text="an")
    assert not any(re.fullmatch("1 merges", text) for text in texts(window, ".merge small"))
    window.go(view="heads")
    assert texts(window, ".named-edges .down")[0] == "".join(texts(window, "#strips .source"))
    assert texts(window, ".heads figcaption button")[0] == "switch off"


def test_the_sum_of_a_residual_connection_has_one_scale(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="addnorm", stack="encoder", layer=0, part="attention")
    assert [sign.strip() for sign in window.page.locator(".summand .sign").all_text_contents()] == ["", "+", "="]
    assert window.page.locator(".summand .legend:visible").count() == 1
    traced = trace(opened("translator"), TEXT)
    names = ("encoder.sum", "encoder.blocks.0.attention", "encoder.blocks.0.attention_add_norm.added")
    most = max(traced[name].abs().max().item() for name in names)
    shown = window.page.text_content(".summand .legend:visible").replace("−", "-")
    assert float(shown.split("-")[1][:4]) == pytest.approx(most, abs=0.06)


def test_unlikely_tokens_are_summed_up(visit: Callable[..., Visit]) -> None:
    window, logits = visit("writer"), trace(opened("writer"), TEXT)["head.logits"][0, 2]
    window.go(view="next", token=2, temperature="0.1")
    probabilities = (logits / 0.1).softmax(-1)
    listed = window.page.locator(".next-words .bar[data-id]").count()
    assert listed == max(5, min(24, int((probabilities >= 0.001).sum())))
    assert f"{len(logits) - listed} others" in window.page.text_content(".next-words .others")


def test_the_words_that_made_a_class_and_the_cosine_of_two_vectors(visit: Callable[..., Visit]) -> None:
    window, traced = visit("classifier"), trace(opened("classifier"), TEXT)
    window.go(view="answer")
    best = int(traced["head.logits"][0].argmax())
    found = saliency(traced, best)["source"]
    shown = window.page.eval_on_selector_all(".salient .token", "all => all.map(one => one.title)")
    assert [float(text.replace("−", "-")) for text in shown] == pytest.approx(found.tolist(), abs=6e-4)
    window = visit("embedder")
    window.go(view="answer", beside="text", other="a cat runs")
    one, other = (trace(opened("embedder"), text)["pooled"] for text in (TEXT, "a cat runs"))
    cosine = float(window.page.text_content(".cosine strong").replace("−", "-"))
    assert cosine == pytest.approx(torch.cosine_similarity(one, other).item(), abs=6e-4)


def test_a_text_is_written_with_its_probabilities(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="decoding", shown=3)
    assert window.explorer
    written = window.page.locator(".writing .written")
    assert written.count() == 3
    first = trace(opened("writer"), TEXT)["head.logits"][0, -1].softmax(-1).max().item()
    assert float(written.nth(0).evaluate("one => one.style.getPropertyValue('--sure')")) == pytest.approx(
        first, abs=1e-5
    )


def test_what_is_said_is_true_of_this_model(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    assert window.explorer
    window.go(view="addnorm")
    is_pre = window.explorer.runs[0].recipe.model.norm_order == "pre"
    assert ("does not grow" in window.page.text_content("#stage .lead")) is not is_pre
    window.go(view="alignment")
    assert "ross-attention" not in window.page.text_content("#stage .lead")
    window.go(view="beam")
    best = window.page.eval_on_selector_all(".tree .best rect", "all => all.map(one => one.getAttribute('y'))")
    assert len(set(best)) == 1  # a straight line at the top, where it is in sight
    assert 0 < len(best) <= MOST_IN_WHOLE_PASSES
    window = visit("guesser")
    window.go(view="next")
    assert window.page.text_content("#stage h1") == "Predicted token"
    window = visit("embedder")
    window.go(view="overview", text=" ".join(["the cat"] * 20))
    assert "how the vector is computed" in window.page.text_content(".controls")
    assert re.search(r"tokens \d+ to (\d+) of \1", window.page.text_content(".stack-name"))
    window.go(view="answer")
    assert "this model" in window.page.text_content("#stage .lead")
    window.go(view="heads")
    assert "cosine" in window.page.text_content("#stage .note")  # a vector has no probability
    window.until("document.querySelector('.importance.whole').textContent")
    assert "likely" not in window.page.content()


def test_the_page_says_how_its_numbers_compare_with_decoding(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="overview")
    assert "float32; translate computes the same numbers" in window.page.text_content("#stage .facts")


def test_spaces_that_must_not_break_can_be_seen(visit: Callable[..., Visit]) -> None:
    """French often has one before a question mark: the translator that comes with clearhead considers it."""
    window = visit(explorer=Explorer(["english-french"]))
    window.go(view="next", text="Where is the nearest station?", token=7)
    assert "⍽" in window.page.locator("#stage").text_content()
