"""One entry describes a kind of tensor: with a norm on the queries in the table, all that shows tensors knows it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from rich.console import Console

from clearhead.config import Family
from clearhead.inspect.explain import explain
from clearhead.inspect.kinds import KINDS, find_kind
from clearhead.inspect.names import names_of, parents
from clearhead.inspect.patch import knock_out
from clearhead.inspect.paths import Node
from clearhead.inspect.story import story
from clearhead.inspect.terminal.walk import Walk, show
from clearhead.inspect.trace import trace
from clearhead.inspect.web.facts import describe, entries_of
from clearhead.runs import Run
from query_norms import described, with_query_norms
from tiny_runs import TEXT, tiny_run

FAMILIES: tuple[Family, ...] = ("encoder-decoder", "decoder-only", "encoder-only")
ATTENTION = "decoder.blocks.0.attention"
NORM = f"{ATTENTION}.late_norm"


@pytest.fixture
def run() -> Iterator[Run]:
    torch.manual_seed(0)
    with described():
        yield with_query_norms(tiny_run("decoder-only", dtype=torch.float64, position="rotary"))


def test_an_unknown_module_is_not_listed() -> None:
    run = with_query_norms(tiny_run("decoder-only"))
    assert not any("late_norm" in name for name in names_of(run.model, run.recipe.model))
    assert find_kind(Node(NORM, run.recipe.model)) is None


def test_names_axes_and_labels_know_it(run: Run) -> None:
    traced = trace(run, TEXT)
    assert {NORM, f"{NORM}.normalized"} <= {*traced}
    for name in (NORM, f"{NORM}.normalized"):
        named = traced.named(name)
        assert named.axes == ("batch", "head", "query", "channel")
        assert named.labels[2] == traced.tokens["target"]


def test_the_graph_leads_through_it(run: Run) -> None:
    config = run.recipe.model
    assert parents(f"{NORM}.normalized", config) == (f"{ATTENTION}.queries",)
    assert parents(NORM, config) == (f"{NORM}.normalized",)
    assert parents(f"{ATTENTION}.scores", config) == (NORM, f"{ATTENTION}.keys")


def test_its_story_is_told(run: Run) -> None:
    told = story(trace(run, TEXT), NORM)
    assert told.title == "normalized queries"
    assert told.formula == "y = γ · n + β"
    assert told.parameters == (f"{NORM}.weight", f"{NORM}.bias")
    assert told.source.function == "LayerNorm.forward"
    assert told.shape_in_words == "1 text × 4 heads × 8 queries × 4 channels"


@pytest.mark.parametrize("family", FAMILIES)
def test_its_cells_and_those_computed_from_it_are_explained(family: Family) -> None:
    dice = torch.Generator().manual_seed(0)
    with described():
        run = with_query_norms(tiny_run(family, dtype=torch.float64))
        traced = trace(run, TEXT, "la voiture" if family == "encoder-decoder" else None)
        assert any("late_norm" in name for name in traced)
        for name, tensor in traced.items():
            index = [int(torch.randint(size, (), generator=dice)) for size in tensor.shape]
            cell = explain(traced, name, index)
            assert cell.value == pytest.approx(cell.traced, rel=1e-6, abs=1e-6), cell.text


def test_it_can_be_changed(run: Run) -> None:
    before = trace(run, TEXT)
    after = before.again({NORM: knock_out(head=1)})
    assert not after[f"{ATTENTION}.scores"][0, 1].any()
    assert torch.equal(after[f"{ATTENTION}.scores"][0, 0], before[f"{ATTENTION}.scores"][0, 0])


def test_the_walk_shows_it(run: Run) -> None:
    file = io.StringIO()
    show(Walk(trace(run, TEXT), 80), Console(file=file, width=80), step=False)
    text = file.getvalue()
    assert "normalized [1, 4, 8, 4] → late norm [1, 4, 8, 4]" in text
    assert "The queries of each head, brought to one scale." in text
    assert "late norm [1, 4, 8, 4], keys [1, 4, 8, 4] → scores [1, 4, 8, 8]" in text


def test_the_page_is_given_it(run: Run) -> None:
    table: list[dict[str, Any]] = describe(run)["kinds"]
    entry = table[entries_of(run)[NORM]]
    assert (entry["view"], entry["title"]) == ("attention", "Normalized queries")
    assert entry["axes"] == ("batch", "head", "query", "channel")


def test_the_table_is_as_it_was_afterwards() -> None:
    assert not any(kind.name == "late_norm" for kind in KINDS)
