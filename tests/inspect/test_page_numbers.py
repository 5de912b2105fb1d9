"""The page shows the library's own numbers: cells, probabilities, classes, steps of training."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from browsing import Visit, expected_next, probabilities
from clearhead.decode.sampling import SamplingSettings
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from clearhead.runs import load_weights, open_run
from explored_runs import folder_of, opened, snapshot_path
from query_norms import described, with_query_norms
from saved_runs import save
from tiny_runs import TEXT, tiny_run


@pytest.mark.parametrize(("kind", "stack"), [("translator", "encoder"), ("writer", "decoder"), ("guesser", "encoder")])
def test_cells_show_the_librarys_numbers(kind: str, stack: str, visit: Callable[..., Visit]) -> None:
    window, traced = visit(kind), trace(opened(kind), TEXT)
    for stage in ("weights", "scores", "keys"):
        window.go(view="attention", stack=stack, layer=1, head=2, stage=stage)
        name = f"{stack}.blocks.1.attention.{stage}"
        assert window.point(3, 1) == pytest.approx(traced[name][0, 2, 3, 1].item(), abs=1e-6), stage
        assert window.page.locator("#cell math").count() == 2
        assert window.page.locator("#source mark").count() >= 1
        assert name in window.page.text_content("#inspector")


def test_a_tensor_that_is_described_in_the_table_is_drawn(visit: Callable[..., Visit]) -> None:
    explorer = Explorer([folder_of("writer")])
    with described():
        run = with_query_norms(explorer.runs[0])
        window = visit(explorer=explorer)
        window.go(view="attention", stage="late_norm", layer=1, head=2)
        assert "Normalized queries" in window.page.text_content(".stages")
        name = "decoder.blocks.1.attention.late_norm"
        assert window.point(3, 1) == pytest.approx(trace(run, TEXT)[name][0, 2, 3, 1].item(), abs=1e-6)
        window.page.click(f"#inspector .parents >> text={name}.normalized")
        window.drawn()
        assert "Normalized queries" in window.page.text_content(".chosen-stage h2")


def test_norms_on_queries_and_keys_are_drawn(visit: Callable[..., Visit], tmp_path: Path) -> None:
    run = tiny_run("decoder-only", position="rotary", query_key_norm=True, norm="rms", head_channels=6, kv_heads=2)
    window = visit(explorer=Explorer([save(run, tmp_path / "qwen")]))
    for stage, title in (("query_norm", "Normalized queries"), ("key_norm", "Normalized keys")):
        window.go(view="attention", stage=stage, layer=1, head=1)
        assert title in window.page.text_content(".chosen-stage h2")
        name = f"decoder.blocks.1.attention.{stage}"
        head = 1 if stage == "query_norm" else 0  # two heads share the keys of one
        assert window.point(3, 1) == pytest.approx(trace(run, TEXT)[name][0, head, 3, 1].item(), abs=1e-6)


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_the_next_token_begins_where_the_choice_is_hardest(kind: str, visit: Callable[..., Visit]) -> None:
    window, logits = visit(kind), trace(opened(kind), TEXT)["head.logits"][0, 1:]
    hardest = 1 + int(torch.distributions.Categorical(logits=logits).entropy().argmax())
    window.go(view="next")
    expected = expected_next(trace(opened(kind), TEXT), place=hardest)
    assert max(probabilities(window).values()) == pytest.approx(expected.max().item(), abs=1e-5)
    assert f"token={hardest}" in window.page.url


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_probabilities_are_the_librarys(kind: str, visit: Callable[..., Visit]) -> None:
    window, traced = visit(kind), trace(opened(kind), TEXT)
    for choice in (
        SamplingSettings(),
        SamplingSettings(temperature=0.5, top_k=7),
        SamplingSettings(temperature=2.0, top_k=12, top_p=0.8),
    ):
        window.go(view="next", token=1, temperature=choice.temperature, top_k=choice.top_k, top_p=choice.top_p)
        expected = expected_next(traced, choice)
        for number, probability in probabilities(window).items():
            assert probability == pytest.approx(expected[number].item(), abs=1e-5)


def test_sliders_change_the_choice_at_once(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="next")
    window.page.fill("input[name=top_k]", "3")
    window.drawn()
    assert sum(p > 0 for p in probabilities(window).values()) == 3
    assert "top_k=3" in window.page.url


def test_classes_are_the_librarys(visit: Callable[..., Visit]) -> None:
    window = visit("classifier")
    window.go(view="answer")
    expected = trace(opened("classifier"), TEXT)["head.logits"][0].softmax(-1)
    shown = [float(text.rstrip(" %")) for text in window.page.locator(".bar output").all_text_contents()]
    assert shown == pytest.approx([100 * p for p in expected.tolist()], abs=0.6)


def test_the_slider_goes_through_training(visit: Callable[..., Visit]) -> None:
    window = visit("writer")
    window.go(view="next", token=1)
    window.page.focus("#learn input")
    window.page.keyboard.press("Home")
    window.page.keyboard.press("ArrowRight")  # the second snapshot
    window.until("location.hash.includes('snapshot=7')")
    window.drawn()
    run = open_run(folder_of("writer"))
    load_weights(run.model, snapshot_path(folder_of("writer"), 7))
    assert "step 7" in window.page.text_content("#learn")
    assert max(probabilities(window).values()) == pytest.approx(expected_next(trace(run, TEXT)).max().item(), abs=1e-5)


def test_rows_of_an_alignment_say_what_is_written_next(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="alignment", part="cross_attention", stack="decoder", target="a cat")
    pieces = window.page.locator("#strips .target").all_text_contents()
    rows = window.page.locator(".alignment text.target-word").all_text_contents()
    assert rows[:-1] == [f"{first} → {second}" for first, second in pairwise(pieces)]


def test_decoding_goes_step_by_step(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="decoding")
    before = window.page.text_content(".writing")
    window.page.click("[aria-label='One step forward']")
    window.until(f"document.querySelector('.writing').textContent.length > {len(before)}")
