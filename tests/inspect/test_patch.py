"""Any named tensor and any parameter can be changed; afterwards the model is as it was before."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import UserError
from clearhead.inspect.patch import (
    Change,
    Changes,
    compare,
    from_json,
    knock_out,
    patch,
    replace,
    scale,
    shuffle,
    to_json,
)
from clearhead.inspect.trace import Trace, trace
from clearhead.runs import Run
from tiny_runs import TEXT, tiny_run

TARGET = "la voiture"
WEIGHTS = "encoder.blocks.0.attention.weights"


@pytest.fixture(scope="module")
def run() -> Run:
    torch.manual_seed(0)
    return tiny_run()


@pytest.fixture(scope="module")
def before(run: Run) -> Trace:
    return trace(run, TEXT, TARGET)


@torch.no_grad()
def says(run: Run, before: Trace, changes: Changes) -> Tensor:
    with patch(run, changes):
        return run.model(*before.inputs.tensors(run.device))


def test_every_name_can_be_changed_and_the_model_is_as_before(run: Run, before: Trace) -> None:
    for name in before:
        after = says(run, before, {name: scale(0.0 if name.endswith("mask") else 1.5)})
        moved = not torch.equal(after, before["head.logits"])
        # a norm does not depend on the scale of its input
        assert moved or name.endswith((".added", "mask")), name
    assert torch.equal(says(run, before, {}), before["head.logits"])


def test_knocking_a_head_out_is_zeroing_its_columns(run: Run, before: Trace) -> None:
    one = says(run, before, {"encoder.blocks.0.attention.head_outputs": knock_out(head=2)})
    other = says(run, before, {"encoder.blocks.0.attention.out.weight": knock_out(column=range(8, 12))})
    torch.testing.assert_close(one, other)
    assert not torch.allclose(one, before["head.logits"])
    heads = says(run, before, {WEIGHTS: knock_out(head=2)})  # no weights, no output
    torch.testing.assert_close(heads, one)


def test_a_change_at_some_places_leaves_the_others(before: Trace) -> None:
    after = before.again({WEIGHTS: replace(0.25, head=[0, 3], query=1)})
    changed = torch.zeros_like(before[WEIGHTS], dtype=torch.bool)
    changed[0, [0, 3], 1] = True
    assert (after[WEIGHTS][changed] == 0.25).all()
    assert torch.equal(after[WEIGHTS][~changed], before[WEIGHTS][~changed])


def test_a_mask_can_be_tightened_and_loosened(run: Run, before: Trace) -> None:
    mask, weights = "decoder.blocks.0.attention.mask", "decoder.blocks.0.attention.weights"
    tight = before.again({mask: knock_out(query=1, key=0)})
    assert (tight[weights][0, :, 1, 0] == 0).all()
    torch.testing.assert_close(tight[weights].sum(-1), torch.ones_like(tight[weights].sum(-1)))
    assert torch.equal(tight[weights][0, :, 2:], before[weights][0, :, 2:])
    loose = before.again({mask: replace(1, head=3)})  # one head may look ahead
    assert (loose[weights][0, 3, 0] > 0).all()
    assert torch.equal(loose[weights][0, :3], before[weights][0, :3])


def test_a_token_that_may_see_nothing_gets_nothing(before: Trace) -> None:
    after = before.again({"encoder.blocks.0.attention.mask": knock_out(query=2)})
    assert (after["encoder.blocks.0.attention.head_outputs"][0, :, 2] == 0).all()
    assert after["head.logits"].isfinite().all()


def test_shuffled_positions_are_the_shuffled_rows(before: Trace) -> None:
    order = [3, 1, 0, 2, *range(4, len(before.ids["source"]))]
    after = before.again({"encoder.position": shuffle(order)})
    assert torch.equal(after["encoder.position"], before["encoder.position"][order])
    seeded = [before.again({"encoder.position": shuffle(seed)})["encoder.position"] for seed in (1, 1, 2)]
    assert torch.equal(seeded[0], seeded[1])
    assert not torch.equal(seeded[0], seeded[2])


def test_rotary_positions_can_be_shuffled_too() -> None:
    plain = trace(tiny_run("decoder-only", position="rotary"), TEXT)
    order = list(reversed(range(len(plain.ids["target"]))))
    after = plain.again({"decoder.position": shuffle(order)})
    assert torch.equal(after["decoder.position"], plain["decoder.position"].flip(3))


def test_without_positions_an_encoder_is_equivariant() -> None:
    plain = trace(tiny_run("encoder-only", position="none", dtype=torch.float64), TEXT)
    order = [2, 0, 1, *range(3, len(plain.ids["source"]))]
    after = plain.again({"encoder.embedding": shuffle(order)})
    torch.testing.assert_close(after["head.logits"], plain["head.logits"][:, order])


def test_a_row_of_weights_can_be_edited_and_tied_tables_go_along(run: Run, before: Trace) -> None:
    row = before.ids["source"][0]
    after = before.again({"decoder.embedding.weight": replace([1.0] * 16, row=row)})
    assert (after["encoder.embedding"][0, 0] == 4.0).all()  # times the root of 16, in the encoder as well
    assert torch.equal(after["encoder.embedding"][0, 1], before["encoder.embedding"][0, 1])
    torch.testing.assert_close(after["head.logits"][..., row], after["decoder.blocks.1.feed_forward_add_norm"].sum(-1))
    assert torch.equal(before.again()["head.logits"], before["head.logits"])


def test_tensors_functions_lists_and_patterns_are_changes_too(run: Run, before: Trace) -> None:
    name = "encoder.blocks.1.feed_forward"
    zero = says(run, before, {name: knock_out()})
    assert torch.equal(says(run, before, {name: torch.zeros(16)}), zero)
    assert torch.equal(says(run, before, {name: lambda x: 0 * x}), zero)
    assert torch.equal(says(run, before, {name: [scale(3.0), knock_out()]}), zero)
    both = says(run, before, {"encoder.blocks.*.feed_forward": knock_out()})
    assert torch.equal(both, says(run, before, {f"encoder.blocks.{n}.feed_forward": knock_out() for n in (0, 1)}))


def test_a_patch_holds_for_whatever_the_model_does(run: Run, before: Trace) -> None:
    changes = {"decoder.blocks.0.cross_attention": knock_out()}
    with patch(run, changes):
        nested = trace(run, TEXT, TARGET)
        written = trace(run, TEXT)
    assert torch.equal(nested["head.logits"], before.again(changes)["head.logits"])
    assert written.ids == trace(run, TEXT, changes=changes).ids


def test_an_error_inside_leaves_no_change_behind(run: Run, before: Trace) -> None:
    with pytest.raises(ZeroDivisionError), patch(run, {"encoder.*": knock_out()}):
        raise ZeroDivisionError
    assert torch.equal(says(run, before, {}), before["head.logits"])


def test_compare_says_where_a_change_arrives(before: Trace) -> None:
    moved = compare(before, before.again({"encoder.blocks.1.attention": scale(2.0)}))
    assert list(moved) == before.names()
    assert moved["encoder.blocks.0.feed_forward_add_norm"] == moved["decoder.blocks.0.attention"] == 0
    assert moved["encoder.blocks.1.attention"] == pytest.approx(1.0)
    assert moved["head.logits"] > 0
    with pytest.raises(UserError, match="compare the same tokens"):
        compare(before, trace(before.run, "a cat", TARGET))


def test_changes_survive_json(before: Trace) -> None:
    changes = {
        WEIGHTS: [knock_out(head=1, key=[0, 2]), scale(0.5)],
        "encoder.position": [shuffle(7)],
        "decoder.embedding.weight": [replace([0.5] * 16, row=3)],
    }
    again = from_json(json.loads(json.dumps(to_json(changes))))
    assert again == changes
    assert torch.equal(before.again(again)["head.logits"], before.again(changes)["head.logits"])
    with pytest.raises(UserError, match="cannot be written as JSON"):
        to_json({WEIGHTS: torch.zeros(1)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder.blocks.0.attention.weight": knock_out()}, r"no 'encoder.blocks.0.attention.weight'; did you mean"),
        ({WEIGHTS: knock_out(haed=1)}, r"weights: at haed = \[1\]: this tensor has no such axis; did you mean 'head'"),
        ({WEIGHTS: knock_out(head=4)}, "at head = 4: this tensor has 4; count from 0"),
        ({WEIGHTS: replace([1.0, 2.0, 3.0])}, r"of shape \[3\] does not fit a tensor of shape"),
        ({WEIGHTS: replace([[1.0], [2.0, 3.0]])}, "expected a number, or lists of numbers of one length"),
        ({WEIGHTS: Change("scale", [1.0, 2.0, 3.0])}, r"of shape \[3\] does not fit a tensor of shape"),
        ({WEIGHTS: shuffle()}, "only a tensor with a token axis can be shuffled"),
        ({"encoder.position": shuffle([0, 0])}, r"shuffle \[0, 0\]: an order of 8 tokens contains each of 0 to 7 once"),
    ],
)
def test_mistakes_get_a_clear_message(before: Trace, changes: dict[str, Change], message: str) -> None:
    with pytest.raises(UserError, match=message):
        before.again(changes)


@pytest.mark.parametrize(
    "plain",
    [
        [],
        {"a": {"kind": "scale"}},
        {"a": [{"kind": "scale"}]},
        {"a": [{"kind": "scale", "value": 0, "else": 1}]},
        {"a": [{"kind": "explode", "value": 0}]},
        {"a": [{"kind": "scale", "value": "import os"}]},
        {"a": [{"kind": "scale", "value": 0, "at": {"head": 1}}]},
        {"a": [{"kind": "scale", "value": 0, "at": {"head": [0.5]}}]},
        {"a": [{"kind": "shuffle", "value": 0.5}]},
    ],
)
def test_what_is_no_change_is_refused(plain: Any) -> None:
    with pytest.raises(UserError):
        from_json(plain)


def test_a_tied_table_is_changed_once_for_all_its_names(before: Trace) -> None:
    after = before.again({"*.embedding.weight": scale(2.0)})
    assert torch.equal(after["decoder.embedding"], 2 * before["decoder.embedding"])
