"""What the explorer answers is what the library computes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from clearhead.inspect.patch import from_json, knock_out
from clearhead.inspect.trace import capture, trace
from clearhead.inspect.web import pictures
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.merges import replay
from clearhead.runs import load_weights, open_run
from explored_runs import KINDS, STEPS, WEIGHTS, begin, folder_of, opened, snapshot_path
from tiny_runs import TEXT, tokenizers


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_is_the_librarys(kind: str) -> None:
    explorer, run = Explorer([folder_of(kind)]), opened(kind)
    found, traced = begin(explorer), trace(run, TEXT)
    assert found["target"] == traced.target_text
    assert set(found["names"]) == set(traced.names())
    for name in found["names"]:
        value = traced.named(name)
        expected = value.value.select(value.axes.index("batch"), 0) if "batch" in value.axes else value.value
        assert torch.equal(explorer.tensor(found["id"], name), expected.float())


def test_changes_are_the_librarys(explorer: Explorer) -> None:
    name = "encoder.blocks.0.attention.head_outputs"
    changes = json.dumps({name: [{"kind": "scale", "value": 0, "at": {"head": [1]}}]})
    number = begin(explorer, changes=changes)["id"]
    before = trace(opened("translator"), TEXT)
    expected = before.again({name: knock_out(head=1)})  # the same tokens, whatever the changed model would write
    assert torch.equal(explorer.tensor(number, "head.logits"), expected["head.logits"][0])
    assert not torch.equal(expected["head.logits"], before["head.logits"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("decoder.blocks.0.attention.mask", {"kind": "scale", "value": 0, "at": {"query": [2], "key": [1]}}),
        ("decoder.blocks.1.cross_attention.mask", {"kind": "scale", "value": 0, "at": {"query": [3], "key": [0]}}),
        ("decoder.position", {"kind": "shuffle", "value": 1, "at": {}}),
        ("encoder.blocks.0.attention.mask", {"kind": "scale", "value": 0, "at": {"query": [4], "key": [0]}}),
        ("decoder.blocks.1.cross_attention", {"kind": "scale", "value": 0, "at": {}}),
    ],
)
def test_a_change_keeps_the_tokens_and_says_what_would_be_written(
    explorer: Explorer, name: str, change: dict[str, Any]
) -> None:
    before, run = begin(explorer), opened("translator")
    after = begin(explorer, changes=json.dumps({name: [change]}))
    assert after["tokens"] == before["tokens"]
    assert (before["before"], after["before"]) == ("", before["id"])
    assert (before["unchanged"], after["unchanged"]) == (before["id"], before["id"])
    effect = explorer.answer("effect", {"trace": after["id"]})
    changes = from_json({name: [change]})
    traced = trace(run, TEXT)
    logits = traced.again(changes)["head.logits"][0].log_softmax(-1)
    assert isinstance(effect, dict)
    for part, choice in zip(effect["parts"], traced.ids["target"][1:], strict=False):
        assert part["after"] == pytest.approx(logits[part["row"], choice].exp().item(), abs=1e-6)
    ids = traced.ids["target"]
    for _ in ids:  # a whole pass at a time: each makes one more token right
        inputs = replace(traced.inputs, ids={**traced.ids, "target": ids})
        best = capture(run, inputs, changes, ["head.logits"], gradients=False)["head.logits"][0].argmax(-1).tolist()
        ids = (ids[0], *best[:-1])
    written = [*ids[1:], run.tokenizers.target.end]
    expected = run.tokenizers.target.decode(written[: written.index(run.tokenizers.target.end)])
    assert effect["writes"].startswith(expected)
    assert effect["wrote"].startswith(before["target"])


def test_the_effect_of_a_change_on_other_outputs() -> None:
    off = json.dumps({"encoder.blocks.0.attention": [{"kind": "scale", "value": 0}]})
    for kind, key in (("classifier", "parts"), ("guesser", "parts"), ("embedder", "cosine")):
        explorer = Explorer([folder_of(kind)])
        effect = explorer.answer("effect", {"trace": begin(explorer, changes=off)["id"]})
        assert isinstance(effect, dict)
        assert effect[key]
        assert "writes" not in effect


@pytest.mark.parametrize("step", STEPS)
def test_snapshots_are_those_of_the_run(explorer: Explorer, step: int) -> None:
    run = open_run(folder_of("translator"))
    load_weights(run.model, snapshot_path(folder_of("translator"), step))
    found = begin(explorer, target="a cat", snapshot=str(step))
    number = found["id"]
    assert found["unchanged"] == number  # importance is that of this step
    assert torch.equal(explorer.tensor(number, WEIGHTS), trace(run, TEXT, "a cat")[WEIGHTS][0])


def test_no_random_numbers_are_drawn() -> None:
    """The server answers in threads: they would take the numbers of whoever has set a seed meanwhile."""
    explorer = Explorer([folder_of("translator")])
    before = torch.get_rng_state()
    number = begin(explorer, snapshot="7")["id"]
    assert explorer.answer("milestones", {"trace": number})
    assert torch.equal(torch.get_rng_state(), before)


def test_merges_end_in_the_tokens_of_the_text() -> None:
    tokenizer = tokenizers().source
    words = replay(tokenizer, "the red house <end>")
    assert [piece for steps in words for piece in steps[-1]] == [p for p, _ in tokenizer.pieces("the red house <end>")]
    assert all(len(after) == len(before) - 1 for steps in words for before, after in pairwise(steps))


def test_the_map_of_words_has_the_sentence_in_it(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_WORDS", 20)
    found = explorer.words(begin(explorer)["id"], "encoder")
    assert isinstance(found, dict)
    ids, table = trace(opened("translator"), TEXT).ids["source"], opened("translator").model.encoder.embedding.weight
    assert {*ids} <= {*found["ids"]}
    assert len(found["points"]) == len(found["words"]) == len(found["ids"]) < 60
    cosines = torch.cosine_similarity(table[ids[1]], table)
    cosines[ids[1]] = -1
    near = explorer.near(begin(explorer)["id"], "encoder")
    assert isinstance(near, dict)
    assert near[str(ids[1])][0][1] == pytest.approx(cosines.max().item(), abs=1e-5)


def test_lengths_are_those_of_the_stream(explorer: Explorer) -> None:
    found, traced = explorer.lengths(begin(explorer)["id"], "decoder"), trace(opened("translator"), TEXT)
    assert isinstance(found, dict)
    assert "decoder.blocks.1.cross_attention_add_norm" in found
    for name, lengths in found.items():
        assert lengths == pytest.approx(traced[name][0].norm(dim=-1).tolist())


def test_the_map_spreads_words_as_far_as_two_directions_can() -> None:
    points = torch.randn(300, 20) * torch.linspace(3, 1, 20)
    covariance = points.T @ points
    directions = pictures.leading_directions(points)
    largest = torch.linalg.eigvalsh(covariance)[-2:].flip(0)
    assert torch.allclose(directions.T @ covariance @ directions, largest.diag(), atol=1e-2 * largest[0].item())
    assert torch.allclose(directions.T @ directions, torch.eye(2), atol=1e-5)


def test_the_beam_tree_ends_in_the_best_hypotheses(explorer: Explorer) -> None:
    found = explorer.answer("beam", {"trace": begin(explorer)["id"], "width": "3"})
    assert isinstance(found, dict)
    ranked = sorted((node for node in found["nodes"] if node["rank"] >= 0), key=lambda node: node["rank"])
    assert [node["score"] for node in ranked] == sorted((node["score"] for node in ranked), reverse=True)
    for node in found["nodes"]:
        parent = found["nodes"][node["parent"]] if node["parent"] >= 0 else {"depth": 0, "total": 0.0}
        assert parent["depth"] == node["depth"] - 1
        assert node["total"] <= parent["total"] + 1e-5


def test_a_beam_of_one_writes_what_decoding_shows(explorer: Explorer) -> None:
    number = begin(explorer)["id"]
    steps = explorer.answer("decode", {"trace": number})
    tree = explorer.answer("beam", {"trace": number, "width": "1"})
    assert isinstance(steps, dict)
    assert isinstance(tree, dict)
    assert [step["words"][0] for step in steps["steps"]] == [node["word"] for node in tree["nodes"]]
