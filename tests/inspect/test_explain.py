"""Every cell of every tensor can be explained, and the explanation gives the model's number."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest
import torch

from clearhead.config import Family, ModelConfig, UserError
from clearhead.inspect.explain import Explanation, explain
from clearhead.inspect.patch import replace, scale
from clearhead.inspect.trace import Trace, trace
from tiny_models import GRID, TINY, name
from tiny_runs import TEXT, tiny_run

TARGET = "la voiture"
HEADS = [
    {"head": head, "head_dense": dense, "pool": pool, "segments": segments}
    for head in ("vocabulary", "classes", "embedding")
    for dense, pool, segments in ((True, "first", 2), (False, "mean", 0))
]


def cells(traced: Trace, each: int) -> list[Explanation]:
    """Some cells of every tensor, the same in each test."""
    dice = random.Random(0)
    return [
        explain(traced, where, [dice.randrange(size) for size in tensor.shape])
        for where, tensor in traced.items()
        for _ in range(each)
    ]


def assert_explained(traced: Trace, each: int = 3) -> None:
    for cell in cells(traced, each):
        assert cell.value == pytest.approx(cell.traced, rel=1e-6, abs=1e-6), cell.text
        assert not cell.changed


@pytest.mark.parametrize("config", GRID[::4], ids=name)
def test_every_number_of_every_option_comes_out(config: ModelConfig) -> None:
    family: Family = ("encoder-decoder", "decoder-only", "encoder-only")[GRID.index(config) // 4 % 3]
    target = TARGET if family == "encoder-decoder" else None
    assert_explained(trace(tiny_run(family, config, torch.float64, layers=1), TEXT, target), each=1)


@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "encoder-only"])
def test_every_number_of_every_layer_comes_out(family: Family) -> None:
    target = TARGET if family == "encoder-decoder" else None
    assert_explained(trace(tiny_run(family, TINY, torch.float64), TEXT, target), each=5)


@pytest.mark.parametrize("options", HEADS, ids=lambda o: f"{o['head']}-{o['pool']}")
def test_every_number_of_every_head_comes_out(options: dict[str, object]) -> None:
    assert_explained(trace(tiny_run("encoder-only", TINY, torch.float64, **options), TEXT))


def test_a_score_shows_its_dot_product_over_the_root() -> None:
    traced = trace(tiny_run("decoder-only"), TEXT)
    cell = explain(traced, "decoder.blocks.0.attention.scores", (0, 2, 3, 1))
    queries, keys = (traced[f"decoder.blocks.0.attention.{name}"][0, 2] for name in ("queries", "keys"))
    assert [term.factors for term in cell.terms] == list(zip(queries[3].tolist(), keys[1].tolist(), strict=True))
    assert cell.place == "head 2, query ' ca', key 'the'"
    assert "√4" in cell.text
    assert cell.text.count("·") == 4  # in letters, and three products in numbers
    assert ElementTree.fromstring(cell.mathml).tag == "math"


def test_weights_that_a_query_may_not_see_are_zero_and_say_so() -> None:
    traced = trace(tiny_run("decoder-only"), TEXT)
    cell = explain(traced, "decoder.blocks.0.attention.weights", (0, 0, 1, 2))
    assert cell.value == cell.traced == 0
    assert "may not attend" in cell.text


def test_a_replaced_tensor_says_so() -> None:
    plain, name = trace(tiny_run("decoder-only"), TEXT), "decoder.blocks.0.feed_forward"
    after = plain.again({name: scale(2.0)})
    cell = explain(after, name, (0, 1, 1))
    assert cell.changed
    assert cell.text.endswith(f"changed to {cell.traced:.4g}".replace("-", "−"))
    assert not explain(after, "decoder.blocks.0.feed_forward_add_norm", (0, 1, 1)).changed


def test_edited_weights_are_the_ones_that_explain() -> None:
    matrix = "decoder.blocks.0.attention.query.weight"
    traced = trace(tiny_run("decoder-only"), TEXT).again({matrix: replace(0.5, row=3)})
    cell = explain(traced, "decoder.blocks.0.attention.queries", (0, 0, 2, 3))
    assert not cell.changed
    assert {term.factors[0] for term in cell.terms if term.label != "bias"} == {0.5}


def test_a_token_of_markup_stays_text() -> None:
    traced = trace(tiny_run("decoder-only"), "<script>alert(1)</script>")
    for cell in cells(traced, 1):
        assert "<script" not in cell.mathml


def test_a_cell_that_is_not_there_is_refused() -> None:
    traced = trace(tiny_run("decoder-only"), TEXT)
    with pytest.raises(UserError, match=r"cell \[0, 9\] of decoder.embedding: its shape is \[1, 8, 16\]"):
        explain(traced, "decoder.embedding", (0, 9))
    bare = trace(tiny_run("decoder-only"), TEXT, only=["*.scores"])
    with pytest.raises(UserError, match=r"the trace has no 'decoder.blocks.0.attention.queries'"):
        explain(bare, "decoder.blocks.0.attention.scores", (0, 0, 0, 0))


def test_a_high_masked_score_does_not_affect_the_other_weights() -> None:
    scores = "decoder.blocks.0.attention.scores"
    traced = trace(tiny_run("decoder-only"), TEXT, changes={scores: replace(2000.0, key=3)})
    cell = explain(traced, "decoder.blocks.0.attention.weights", (0, 0, 2, 1))
    assert 0 < cell.value < 1
    assert cell.value == pytest.approx(cell.traced, abs=1e-6)
