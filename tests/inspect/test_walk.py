"""The walk in the terminal: all families, at 80 columns, with and without colour, and the numbers are the model's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from clearhead.config import UserError
from clearhead.inspect.lens import likeliest
from clearhead.inspect.terminal.walk import Walk, show
from clearhead.inspect.trace import Trace, trace
from clearhead.recipes import write_recipe
from clearhead.runs import Run, write_weights
from clearhead.terminal.drawing import cell, cell_size, grid, label, search_tree, shade
from clearhead.verbs.walk import walk
from command_line import Verb
from tiny_runs import LABELS, TEXT, tiny_run

KINDS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {"position": "learned", "max_length": 20},
    "decoder-only": {"norm_order": "pre", "position": "rotary", "activation": "swiglu", "kv_heads": 1},
    "encoder-only": {},
    "classes": {"head": "classes"},
    "embedding": {"head": "embedding", "segments": 2, "embedding_norm": True},
}


def run_of(kind: str) -> Run:
    return tiny_run(kind if "-" in kind else "encoder-only", **KINDS[kind])


def shown(traced: Trace, width: int = 80, layer: int | None = None, colour: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=colour, color_system="truecolor" if colour else None)
    show(Walk(traced, width, layer), console, step=False)
    return file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_walks_at_80_columns(kind: str) -> None:
    text = shown(trace(run_of(kind), TEXT))
    for line in text.splitlines():
        assert cell_len(line) <= 80, line
    for words in ("the text becomes tokens", "block 1: self-attention", "head 3", "[1, 4,", "feed-forward", "answer"):
        assert words in text
    assert ("the search" in text) == (kind in ("encoder-decoder", "decoder-only"))
    assert ("cross-attention" in text) == (kind == "encoder-decoder")
    assert ("the final norm" in text) == (kind == "decoder-only")
    assert "\x1b" not in text


def test_without_colour_it_says_the_same() -> None:
    traced = trace(run_of("decoder-only"), TEXT)
    assert Text.from_ansi(shown(traced, colour=True)).plain.split() == shown(traced).split()


def test_the_grids_show_the_weights() -> None:
    traced = trace(run_of("decoder-only"), TEXT)
    text = shown(traced, layer=1)
    assert "block 0" not in text
    named, tokens = traced.named("decoder.blocks.1.attention.weights"), traced.tokens["target"]
    for weights, title in zip(named.value[0], named.labels[1], strict=True):
        lines = grid(title, weights, torch.ones_like(weights).tril(), tokens, tokens, (8, 4))
        for query, line in enumerate(lines[1:]):
            assert line.plain.rstrip() in text.replace("\n", "  ")
            cells = [line.plain[8 + 4 * key :][:3].strip() for key in range(len(tokens))]
            seen = [str(round(100 * weight)) for weight in weights[query, : query + 1].tolist()]
            assert cells == [*seen, *["·"] * (len(tokens) - query - 1)]


def test_the_likeliest_tokens_and_classes_are_shown() -> None:
    traced = trace(run_of("decoder-only"), TEXT)
    text = shown(traced)
    for _, chance in likeliest(traced["head.logits"][0, -1], traced.named("head.logits").labels[2]):
        assert f"{chance:6.1%}" in text[text.index("after position") :]
    answer = shown(trace(run_of("classes"), TEXT)).split("the answer")[1]
    assert all(label in answer for label in LABELS)


def test_a_masked_word_is_predicted() -> None:
    traced = trace(run_of("encoder-only"), "the <mask> car is fast")
    assert "at position 2, <mask>:" in shown(traced)


@pytest.mark.parametrize("words", [3, 15, 30, 100])
def test_long_texts_stay_readable(words: int) -> None:
    text = shown(trace(tiny_run("encoder-only", layers=1), " red" * words))
    assert all(cell_len(line) <= 80 for line in text.splitlines())


def test_hostile_text_cannot_control_the_terminal() -> None:
    text = shown(trace(run_of("encoder-only"), "a \x1b[2J [bold]b[/bold] \x07"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]b[/bold]" in text


def test_shades_grow_with_the_weight() -> None:
    assert [shade(weight) for weight in (0.0, 0.04, 0.2, 0.45, 0.7, 0.95, 1.0)] == list("  ░▒▓██")
    assert cell(0.456, True, 4).plain == " 46▒"
    assert cell(0.456, False, 4).plain == "  · "
    assert cell(1.0, True, 2).plain == "██"
    assert [cell_size(keys, 72) for keys in (10, 18, 19, 36, 37)] == [4, 4, 2, 2, 1]


def save(run: Run, folder: Path) -> Path:
    folder.mkdir()
    write_recipe(run.recipe, folder / "run.toml")
    run.tokenizers.save(folder)
    write_weights(dict(run.model.named_parameters()), folder / "model.safetensors")
    return folder


def test_the_verb_walks_through_a_run(tmp_path: Path, verb: Verb) -> None:
    run = save(run_of("encoder-decoder"), tmp_path / "run")
    lines, notes, code = verb("walk", run, TEXT, "--target", "la voiture", "--layer", "0", "--step")
    assert code == 0, notes
    assert "block 0: cross-attention" in "\n".join(lines)
    assert "block 1" not in "\n".join(lines)
    with pytest.raises(UserError, match="--layer 2: this model has layers 0 to 1"):
        walk(str(tmp_path / "run"), TEXT, layer=2)


@pytest.mark.parametrize("kind", ["encoder-decoder", "classes"])
def test_the_verb_walks_in_a_terminal_of_any_width(
    kind: str, tmp_path: Path, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(run_of(kind), tmp_path / "run")
    monkeypatch.setenv("COLUMNS", "1")
    lines, _, code = verb("walk", folder, TEXT)
    assert (bool(lines), code) == (True, 0)


def test_the_most_active_neurons_are_those_with_the_largest_values() -> None:
    traced = trace(tiny_run("encoder-only", activation="gelu"), TEXT)
    best = traced["encoder.blocks.0.feed_forward.inner"][0, 0].topk(3)
    expected = "".join(f"  {n:>4}: {v:5.2f}" for v, n in zip(*(part.tolist() for part in best), strict=True))
    assert expected in shown(traced)


def test_a_space_before_a_word_can_be_seen() -> None:
    traced = trace(run_of("encoder-decoder"), TEXT, "la")
    words = traced.named("head.logits").labels[2]
    answer = shown(traced).split("after position")[1]
    for word, _ in likeliest(traced["head.logits"][0, -1], words):
        assert label(word, 16, spaces=True).strip() in answer
    assert label(" la", 7, spaces=True) == "␣la    "
    assert label(" la", 7) == "la     "
    nodes = [{"word": " la", "parent": -1, "depth": 1, "total": -1.0, "rank": 0, "score": 0.0}]
    assert "␣la" in str(search_tree("<start>", nodes, 5).children[0].label)
