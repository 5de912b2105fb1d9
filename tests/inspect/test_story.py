"""Every tensor has a formula, parents, a description, and the lines of the installed code that compute it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import clearhead
from clearhead.config import Family, ModelConfig
from clearhead.inspect.kinds import KINDS, kind_at
from clearhead.inspect.kinds.kind import Kind
from clearhead.inspect.names import names_of
from clearhead.inspect.paths import Node, kind_of
from clearhead.inspect.story import source_lines, story
from clearhead.inspect.trace import trace
from clearhead.model import build_model
from tiny_models import GRID, TINY, VOCAB, name
from tiny_runs import TEXT, tiny_run

FAMILIES: tuple[Family, ...] = ("encoder-decoder", "decoder-only", "encoder-only")
ENCODERS = [
    replace(TINY, family="encoder-only", head=head, head_dense=dense, pool=pool, segments=segments, classes=classes)
    for head, dense, pool, segments, classes in (
        ("vocabulary", True, "mean", 2, 0),
        ("classes", True, "first", 0, 3),
        ("embedding", False, "mean", 0, 0),
    )
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.full_name)
def test_the_lines_that_compute_it_are_there(kind: Kind) -> None:
    function, *beginnings = kind.code
    source = source_lines(kind.code)
    lines = (Path(clearhead.__file__).parent / source.file).read_text().splitlines()
    marked = [lines[number - 1].strip() for number in source.marked]
    for beginning in beginnings:
        assert any(line.startswith(beginning) for line in marked), f"{source.function} has no line {beginning!r}"
    assert list(source.lines) == inspect.getsource(function).splitlines()
    assert lines[source.first - 1] == source.lines[0]


def test_every_entry_describes_some_tensor() -> None:
    configs = [*(replace(c, family=FAMILIES[i % 3]) for i, c in enumerate(GRID[::5])), *ENCODERS]
    normed = {"family": "decoder-only", "position": "rotary", "query_key_norm": True, "activation": "silu", "window": 3}
    configs += [replace(GRID[0], **normed, norm=norm) for norm in ("layer", "rms")]
    used = {id(kind_at(Node(where, c))) for c in configs for where in names_of(build_model(c), c)}
    assert [kind.full_name for kind in KINDS if id(kind) not in used] == []


@pytest.mark.parametrize("config", [*GRID[::24], *ENCODERS], ids=name)
def test_parents_come_before_their_children(config: ModelConfig) -> None:
    for family in FAMILIES if config not in ENCODERS else ("encoder-only",):
        run = tiny_run(family, replace(config, vocab=VOCAB, classes=0), layers=2)
        traced = trace(run, TEXT, "la voiture" if family == "encoder-decoder" else None)
        order = {where: number for number, where in enumerate(traced)}
        used: set[str] = set()
        for where in traced:
            told = story(traced, where)
            assert all(order[parent] < order[where] for parent in told.parents), (where, told.parents)
            used.update(told.parents)
        last = "head.logits" if config.head != "embedding" else "pooled"
        unused = set(order) - used - {last}
        turned = {f"{stack}.position" for stack in ("encoder", "decoder")} if config.position == "rotary" else set()
        assert unused <= turned, unused  # nothing is computed in vain


def test_a_story_says_it_all() -> None:
    run = tiny_run()
    told = story(trace(run, TEXT, "la voiture"), "decoder.blocks.1.cross_attention.scores")
    assert told.formula == "S = (Q K^T) / √d_head"
    assert told.shape_in_words == f"1 text × 4 heads × {told.shape[2]} queries × 8 keys"
    assert told.parents == ("decoder.blocks.1.cross_attention.queries", "decoder.blocks.1.cross_attention.keys")
    assert "dot product" in told.paragraph
    assert told.source.file == "model/attention.py"
    assert any("queries @" in told.source.lines[number - told.source.first] for number in told.source.marked)


def test_parents_cross_from_the_encoder_to_the_decoder() -> None:
    for order, memory in (("post", "encoder.blocks.1.feed_forward_add_norm"), ("pre", "encoder.norm")):
        traced = trace(tiny_run(norm_order=order), TEXT, "la voiture")
        assert story(traced, "decoder.blocks.0.cross_attention.keys").parents == (memory,)


def test_weights_that_take_part_are_named() -> None:
    traced = trace(tiny_run(), TEXT, "la voiture")
    matrix = "encoder.blocks.0.attention.query"
    assert story(traced, "encoder.blocks.0.attention.queries").parameters == (f"{matrix}.weight", f"{matrix}.bias")
    assert story(traced, "head.logits").parameters == ("head.project.weight",)
    assert story(traced, "encoder.blocks.0.attention.scores").parameters == ()
    for where in traced:
        learned = kind_of(where) not in {
            "mask",
            "scores",
            "weights",
            "head_outputs",
            "added",
            "normalized",
            "sum",
            "inner",
        }
        assert bool(story(traced, where).parameters) == (learned and kind_of(where) != "position"), where


@pytest.mark.parametrize("bias", [True, False])
def test_formulas_show_a_bias_only_where_there_is_one(bias: bool) -> None:
    traced = trace(tiny_run(bias=bias), TEXT, "la voiture")
    for where in ("encoder.blocks.0.attention.queries", "encoder.blocks.0.feed_forward"):
        assert ("+ b_" in story(traced, where).formula) == bias


def test_mathml_is_well_formed_and_text_plain() -> None:
    config = replace(TINY, segments=2, family="encoder-only", head_bias=True)
    for formula in (kind.formula_in(config) for kind in KINDS):
        assert ElementTree.fromstring(formula.math()).tag == "math"
        assert "<" not in formula.text
