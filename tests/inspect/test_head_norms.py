"""Norms on queries and keys, as Qwen3 has them: every tensor on the way is named and explained."""

from __future__ import annotations

import pytest
import torch

from clearhead.inspect.explain import explain
from clearhead.inspect.names import parents
from clearhead.inspect.story import story
from clearhead.inspect.trace import trace
from tiny_runs import TEXT, tiny_run

ATTENTION = "decoder.blocks.0.attention"
QWEN = {"position": "rotary", "query_key_norm": True, "head_channels": 6, "kv_heads": 2}


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_every_cell_is_explained(norm: str) -> None:
    torch.manual_seed(0)
    traced = trace(tiny_run("decoder-only", dtype=torch.float64, norm=norm, **QWEN), TEXT)
    dice = torch.Generator().manual_seed(0)
    for name, tensor in traced.items():
        index = [int(torch.randint(size, (), generator=dice)) for size in tensor.shape]
        cell = explain(traced, name, index)
        assert cell.value == pytest.approx(cell.traced, rel=1e-6, abs=1e-6), cell.text


def test_slower_rotations_are_explained() -> None:
    slower = {"rotary_factor": 8.0, "rotary_length": 20, "rotary_base": 50.0, "head_channels": 12}
    traced = trace(tiny_run("decoder-only", dtype=torch.float64, position="rotary", **slower), TEXT)
    for pair in range(6):
        cell = explain(traced, "decoder.position", [0, 0, 0, 3, pair])
        assert cell.value == pytest.approx(cell.traced, rel=1e-6, abs=1e-6), cell.text


def test_a_window_is_explained() -> None:
    traced = trace(tiny_run("decoder-only", dtype=torch.float64, position="rotary", window=3), TEXT)
    name = f"{ATTENTION}.mask"
    for key, value in ((0, 0), (1, 0), (2, 1), (4, 1), (5, 0)):
        cell = explain(traced, name, [0, 1, 4, key])
        assert cell.value == cell.traced == value
    assert story(traced, name).title == "causal mask with a window"


def test_the_graph_leads_through_the_norms() -> None:
    run = tiny_run("decoder-only", dtype=torch.float64, **QWEN)
    config = run.recipe.model
    assert parents(f"{ATTENTION}.queries", config) == (f"{ATTENTION}.query_norm", "decoder.position")
    assert parents(f"{ATTENTION}.query_norm", config) == (f"{ATTENTION}.query_norm.normalized",)
    assert parents(f"{ATTENTION}.query_norm.normalized", config) == (f"{ATTENTION}.query",)
    assert parents(f"{ATTENTION}.keys", config) == (f"{ATTENTION}.key_norm", "decoder.position")
    told = story(trace(run, TEXT), f"{ATTENTION}.key_norm")
    assert told.title == "normalized keys"
    assert told.shape_in_words == "1 text × 2 heads × 8 keys × 6 channels"


def test_without_them_they_are_not_listed() -> None:
    traced = trace(tiny_run("decoder-only", position="rotary"), TEXT)
    assert not any("query_norm" in name or "key_norm" in name for name in traced)
