"""The explorer stays within its memory: large passes in parts, nothing computed twice, nothing kept for long."""

from __future__ import annotations

import json

import pytest
import torch

from clearhead.config import UserError
from clearhead.inspect import passes
from clearhead.inspect.passes import shrunk
from clearhead.inspect.patch import from_json
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from explored_runs import STEPS, WEIGHTS, begin, folder_of, opened
from tiny_runs import TEXT


def test_a_part_of_a_tensor_is_cut_out_of_it(explorer: Explorer) -> None:
    number = begin(explorer)["id"]
    whole = explorer.tensor(number, WEIGHTS)
    assert torch.equal(explorer.tensor(number, WEIGHTS, "2"), whole[2])
    assert torch.equal(explorer.tensor(number, WEIGHTS, "2,1"), whole[2, 1])
    assert torch.equal(explorer.tensor(number, WEIGHTS, small="1"), whole)  # small enough as it is
    other = WEIGHTS.replace("blocks.1", "blocks.0")
    several = explorer.tensors(number, f"{other},{WEIGHTS}", "2;3,1")
    assert torch.equal(several[0], explorer.tensor(number, other, "2"))
    assert torch.equal(several[1], whole[3, 1])
    with pytest.raises(UserError, match="indices '2;1': 2 for 3 tensors"):
        explorer.tensors(number, f"{WEIGHTS},{other},encoder.sum", "2;1")
    with pytest.raises(UserError, match="index = '9': expected 0 to 3"):
        explorer.tensor(number, WEIGHTS, "9")


def test_shrinking_keeps_the_largest_of_each_patch() -> None:
    value = torch.rand(3, 40, 7)
    small = shrunk(value, 10)
    assert small.shape == (3, 10, 7)
    assert torch.equal(small[:, 0], value[:, :4].amax(1))
    assert torch.equal(shrunk(value, 40), value)


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_a_pass_too_large_for_memory_gives_the_same_numbers_block_by_block(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Explorer([folder_of(kind)])
    number, names = begin(whole)["id"], begin(whole)["names"]
    expected = {name: whole.tensor(number, name) for name in names}
    cells = {name: whole.cell(number, name, ",".join("0" * expected[name].dim())) for name in names}
    monkeypatch.setattr(passes, "WHOLE_PASS_LIMIT", 0)
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 1)
    monkeypatch.setattr(passes, "THUMBNAIL_SIZE", 3)
    pieces = Explorer([folder_of(kind)])
    assert begin(pieces)["id"] == number
    for name in names:
        assert torch.equal(pieces.tensor(number, name), expected[name])
        assert pieces.cell(number, name, ",".join("0" * expected[name].dim())) == cells[name]
        assert len(pieces.passes.parts) == 1  # no room for a second
    thumbnails = pieces.passes.thumbnails(number, names)
    traced = trace(opened(kind), TEXT)
    for name in names:
        assert thumbnails[name].dim() < 3 or torch.equal(thumbnails[name], shrunk(traced[name], 3))


def test_a_block_of_a_large_pass_is_computed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "WHOLE_PASS_LIMIT", 0)
    explorer = Explorer([folder_of("translator")])
    number = begin(explorer)["id"]
    off = json.dumps({"decoder.blocks.1.feed_forward": [{"kind": "scale", "value": 0}]})
    blocks = dict(explorer.runs[0].model.named_modules())
    computed: list[str] = []
    for name in ("encoder.blocks.0", "encoder.blocks.1", "decoder.blocks.0", "decoder.blocks.1"):
        blocks[f"{name}.attention"].register_forward_hook(lambda *_, name=name: computed.append(name))
    explorer.tensor(number, "decoder.blocks.1.attention.weights", small="1")
    assert computed == ["decoder.blocks.1"]  # the outputs of the others are known since the first pass
    explorer.tensors(number, f"{WEIGHTS},decoder.blocks.1.attention.weights")
    assert computed[1:] == ["encoder.blocks.1"]  # the other one is kept
    begin(explorer, changes=off)
    assert computed[2:] == ["decoder.blocks.1"]  # the change is in the last block


def test_memory_is_bounded_and_closing_frees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = Explorer([folder_of("translator")])
    first = begin(explorer)["id"]
    one = explorer.passes.bytes()
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 3 * one)
    for text in ("a cat", "a dog", "the house", "the car", "a red car"):
        begin(explorer, text)
        assert explorer.passes.bytes() <= 3 * one
    assert explorer.tensor(first, WEIGHTS).shape[0] == 4  # forgotten, and computed again
    explorer.close([*explorer.passes.by_id])
    assert explorer.passes.bytes() == 0


@pytest.mark.parametrize("kind", ["translator", "writer", "classifier"])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("part", ["attention.head_outputs", "attention.query.weight", "feed_forward"])
def test_blocks_before_a_change_are_not_computed_again(kind: str, layer: int, part: str) -> None:
    explorer, stack = Explorer([folder_of(kind)]), "encoder" if kind == "classifier" else "decoder"
    name, query = f"{stack}.blocks.{layer}.{part}", {"target": "a cat"} if kind == "translator" else {}
    before = explorer.passes.part(begin(explorer, **query)["id"], "pooled" if kind == "classifier" else "head.logits")
    changes = {name: [{"kind": "scale", "value": 0.5}]}
    number = begin(explorer, changes=json.dumps(changes), **query)["id"]
    expected = trace(opened(kind), TEXT, query.get("target"), from_json(changes))
    after = explorer.passes.part(number, *expected)
    assert all(torch.equal(after[n], expected[n]) for n in expected)
    kept = {n.split(".")[2] for n in expected if n.startswith(f"{stack}.blocks") and after[n] is before[n]}
    assert kept == {"0"} - {str(layer)}


def test_only_one_snapshot_stays_in_memory(explorer: Explorer) -> None:
    for step in STEPS:
        begin(explorer, snapshot=str(step))
    models = {id(part.run.model) for part in explorer.passes.parts.values()}
    assert len(models - {id(run.model) for run in explorer.runs}) == 1
