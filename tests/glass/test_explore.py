"""The explorer in a real browser: every view of every family, with the library's own numbers on the screen."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch

from browsing import PATIENCE, Visit, explorer_of, listen
from clearhead.decode.sampling import Choice
from clearhead.exchange.huggingface import import_model
from clearhead.glass.patch import knock_out
from clearhead.glass.trace import Trace, trace
from clearhead.glass.web import share
from clearhead.glass.web.explorer import Explorer
from clearhead.glass.web.share import write_page
from clearhead.runs import load_weights, open_run
from explored_runs import KINDS, folder_of, opened, snapshot_path
from query_norms import described, with_query_norms
from real_corpora import SHARED, needs_shared
from saved_runs import save
from tiny_runs import TEXT, tiny_run

VIEWS = [
    "overview",
    "tokenization",
    "embedding",
    "attention",
    "addnorm",
    "feedforward",
    "heads",
    "alignment",
    "residual",
]
MORE_VIEWS = {
    "translator": ["position", "next", "lens", "decoding", "beam"],
    "writer": ["position", "next", "lens", "decoding", "beam"],
    "classifier": ["position", "answer", "lens"],
    "guesser": ["position", "next", "lens"],
    "embedder": ["answer"],
}


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


def probabilities(window: Visit) -> dict[int, float]:
    """What the view of the next token shows, at the right where there are two: id -> probability."""
    script = "all => all.map(one => [one.dataset.id, one.querySelector('output').dataset.probability])"
    return {
        int(i): float(p)
        for i, p in window.page.eval_on_selector_all(".next-words:not(.beside > :first-child *) [data-id]", script)
    }


def expected_next(traced: Trace, choice: Choice | None = None, place: int = 1) -> torch.Tensor:
    return (choice or Choice()).probabilities(traced["head.logits"][0, place : place + 1])[0]


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
    for choice in (Choice(), Choice(temperature=0.5, top_k=7), Choice(temperature=2.0, top_k=12, top_p=0.8)):
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


def test_two_runs_and_two_texts_are_compared_side_by_side(visit: Callable[..., Visit]) -> None:
    window = visit("translator", "translator")
    window.go(view="overview")
    window.page.click("#tools >> text=Other run")
    window.drawn()
    assert window.page.locator(".beside > section").count() == 2
    window.go(view="attention", beside="text", other="a cat runs")
    assert window.page.evaluate("document.scrollingElement.scrollWidth") <= 1280
    assert "a cat runs" in window.page.text_content(".beside > section:last-child h2")


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


def test_rows_of_an_alignment_say_what_is_written_next(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="alignment", part="cross_attention", stack="decoder", target="a cat")
    pieces = window.page.locator("#strips .target").all_text_contents()
    rows = window.page.locator(".alignment text.target-word").all_text_contents()
    assert rows[:-1] == [f"{first} → {second}" for first, second in pairwise(pieces)]


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


def test_hostile_text_is_shown_as_text(visit: Callable[..., Visit]) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&lt;"
    window = visit("translator")
    for view in ("overview", "tokenization", "attention", "alignment", "lens"):
        window.go(view=view, text=hostile, target=hostile)
        assert window.page.locator("img, #stage script, #strips script").count() == 0
    assert window.page.input_value("#sentence input") == hostile
    assert "".join(window.page.locator("#strips .source").all_text_contents()).startswith("<img·src=x")


def test_a_damaged_address_opens_the_start(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="nonsense", layer="99", head="-x", changes="{", stack="middle", token="1e9")
    assert window.page.text_content("#stage h1") == "Overview"


def test_what_the_server_refuses_is_said(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.page.goto(f"{window.address}#{urlencode({'text': 'x' * 19_000})}")
    assert "at most 2,000 can be shown" in window.page.text_content("#stage .error")
    assert [text for text in window.wrong if "400" not in text] == []
    window.wrong.clear()  # the browser itself notes a refused request


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


def test_the_tour_and_the_glossary_can_be_walked_with_keys(visit: Callable[..., Visit]) -> None:
    window = visit("translator", reduced_motion="reduce")
    window.go(view="overview")
    window.page.keyboard.press("?")
    assert "Residual stream" in window.page.text_content("dialog")
    window.page.keyboard.press("Escape")
    window.page.wait_for_selector("dialog", state="detached")  # it takes the keys until then
    window.page.keyboard.press("t")
    stops = int(re.search(r"of (\d+)", window.page.text_content("#tour small")).group(1))  # type: ignore[union-attr]
    for stop in range(stops):
        window.page.wait_for_selector(f"#tour small:text-is('{stop + 1} of {stops}')")
        window.page.wait_for_selector("#tour .strong:focus")
        window.page.keyboard.press("Enter")
    window.page.wait_for_selector("#tour", state="detached")


def test_keys_change_head_and_block(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention")
    window.page.keyboard.press("]")
    window.drawn()
    assert "head 1" in window.page.text_content("#stage .chosen-stage h2")
    window.page.keyboard.press("}")
    window.drawn()
    assert "block 1" in window.page.text_content("#stage h1 + small")


def test_decoding_goes_step_by_step(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="decoding")
    before = window.page.text_content(".writing")
    window.page.click("[aria-label='One step forward']")
    window.until(f"document.querySelector('.writing').textContent.length > {len(before)}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_file_shows_it_all_without_a_server(
    kind: str, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.html"
    monkeypatch.setattr(share, "MOST_CELLS", 100)
    monkeypatch.setattr(share, "MOST_LOGITS", 10)
    write_page(folder_of(kind), TEXT, path)
    context = browser.new_context(offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    window = Visit(context.new_page(), f"file://{path}")
    listen(window.page, window.wrong, ("file:", "data:", "blob:"))
    for view in VIEWS + MORE_VIEWS[kind]:
        window.go(view=view)
    assert window.page.evaluate("document.styleSheets.length") == 3  # style.css, views.css, diagram.css
    assert window.page.is_disabled("#sentence input")
    assert "cannot be changed" in window.page.text_content("#sentence")
    stack = "decoder" if kind == "writer" else "encoder"
    window.go(view="attention", stack=stack)
    expected = trace(opened(kind), TEXT)[f"{stack}.blocks.0.attention.weights"][0, 0, 1, 1].item()
    assert window.point(1, 1) == pytest.approx(expected, abs=1e-6)
    assert window.wrong == []
    context.close()
