"""Importance is what switching a part off changes; a head is named by where its attention goes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.inspect.answer import answer_of, importance, log_probabilities
from clearhead.inspect.patch import knock_out
from clearhead.inspect.roles import SAID, alignment, head_roles, kinds_of_keys, milestones, since
from clearhead.inspect.trace import Trace, trace
from explored_runs import KINDS, STEPS, folder_of, opened, snapshot_path
from tiny_runs import TEXT, tiny_run


def stack_of(kind: str) -> str:
    return "decoder" if KINDS[kind]["family"] != "encoder-only" else "encoder"


@pytest.mark.parametrize("kind", ["translator", "writer", "classifier", "guesser"])
@pytest.mark.parametrize("part", ["attention", "feed_forward"])
def test_importance_is_the_change_when_a_part_is_off(kind: str, part: str) -> None:
    before = trace(opened(kind), TEXT)
    name = f"{stack_of(kind)}.blocks.1.{part}"
    answer = answer_of(before)
    *heads, whole = importance(before, name)

    def changed(changes: dict[str, object]) -> float:
        after = before.again(changes)
        return float((log_probabilities(after, answer) - log_probabilities(before, answer)).sum())

    assert whole == pytest.approx(changed({name: knock_out()}), abs=1e-4)
    assert len(heads) == (4 if part == "attention" else 0)
    for head, value in enumerate(heads):
        assert value == pytest.approx(changed({f"{name}.head_outputs": knock_out(head=head)}), abs=1e-4)


def test_importance_for_a_sentence_vector_is_its_cosine() -> None:
    before = trace(opened("embedder"), TEXT)
    after = before.again({"encoder.blocks.0.attention": knock_out()})
    cosine = torch.cosine_similarity(before["pooled"], after["pooled"]).item()
    assert importance(before, "encoder.blocks.0.attention")[-1] == pytest.approx(cosine - 1, abs=1e-5)
    with pytest.raises(UserError, match="expected a path that ends in attention or feed_forward"):
        importance(before, "encoder.blocks.0.mask")


def test_the_answer_of_each_family() -> None:
    translated = trace(opened("translator"), TEXT, "a cat")
    answer = answer_of(translated)
    assert answer.rows == tuple(range(len(translated.ids["target"])))
    assert answer.choices[:-1] == translated.ids["target"][1:]
    written = trace(opened("writer"), TEXT)
    assert answer_of(written).choices == (int(written["head.logits"][0, -1].argmax()),)
    classes = trace(opened("classifier"), TEXT)
    assert answer_of(classes).choices == (int(classes["head.logits"][0].argmax()),)
    assert answer_of(trace(opened("embedder"), TEXT)).choices == ()


def with_weights(traced: Trace, name: str, weights: torch.Tensor) -> Trace:
    return Trace(traced.run, traced.inputs, {}, {**{n: traced[n] for n in traced}, name: weights[None]})


def test_heads_are_named_by_where_their_attention_goes() -> None:
    traced = trace(opened("guesser"), TEXT)
    name = "encoder.blocks.0.attention"
    count = traced[f"{name}.weights"].size(-1)
    previous = torch.eye(count).roll(1, 0)
    following = torch.eye(count).roll(-1, 0)
    uniform = torch.full((count, count), 1 / count)
    first = torch.zeros(count, count)
    first[:, 0] = 1
    roles = head_roles(
        with_weights(traced, f"{name}.weights", torch.stack([previous, following, uniform, first])), name
    )
    assert [role.name for role in roles] == ["the previous token", "the next token", "", "the beginning"]
    assert roles[0].share == pytest.approx(1)


def test_repeated_tokens_are_the_same_token() -> None:
    traced = trace(opened("writer"), "the the the the")
    name = "decoder.blocks.0.attention"
    mask = kinds_of_keys(traced, name, None)["the same token"]
    ids = traced.ids["target"]
    assert all(bool(mask[i, j]) == (j < i and ids[i] == ids[j]) for i in range(len(ids)) for j in range(len(ids)))


def test_alignment_finds_the_token_that_a_target_token_depends_on() -> None:
    traced = trace(opened("translator"), TEXT, "a cat")
    answer = answer_of(traced)
    before = log_probabilities(traced, answer)
    falls = []
    for key in range(len(traced.ids["source"])):
        after = traced.again({"decoder.blocks.*.cross_attention.mask": knock_out(key=key)})
        falls.append(before - log_probabilities(after, answer))
    stacked = torch.stack(falls)
    expected = torch.where(stacked.amax(0) > 0.1, stacked.argmax(0), -1)
    assert torch.equal(alignment(traced), expected)
    with pytest.raises(UserError, match="an encoder and a decoder"):
        alignment(trace(tiny_run("decoder-only"), TEXT))


def test_milestones_are_the_steps_from_which_on_something_stays(tmp_path: Path) -> None:
    signs = {0: {"half"}, 1: set(), 2: {"half", "all"}, 3: {"half"}, 4: {"half", "all"}}
    assert list(since("half", signs)) == [2]
    assert list(since("all", signs)) == [4]
    assert list(since("the aligned token", signs)) == []
    assert list(since("always", {0: {"always"}, 1: {"always"}})) == []  # from the beginning: nothing was learned


@pytest.mark.parametrize("kind", KINDS)
def test_the_finished_model_has_its_own_answer(kind: str) -> None:
    folder = folder_of(kind)
    finished = trace(opened(kind), TEXT)
    paths = {step: snapshot_path(folder, step) for step in STEPS} | {30: folder / "model.safetensors"}
    found = {what: step for step, what in milestones(finished, paths)}
    assert found[SAID["near" if kind == "embedder" else "all"]] in paths
    assert (SAID["half"] in found) <= (KINDS[kind].get("head", "vocabulary") == "vocabulary")  # a class has no half
    assert all(step in paths for step in found.values())
    before = opened(kind).model.state_dict()
    assert all(torch.equal(before[name], value) for name, value in finished.run.model.state_dict().items())


def test_a_source_of_one_token_aligns_with_nothing() -> None:
    traced = trace(opened("translator"), "", "a cat")
    assert len(traced.ids["source"]) == 1
    assert alignment(traced).tolist() == [-1] * len(traced.ids["target"])


def test_copies_of_a_long_text_go_through_the_model_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened("translator")
    traced = trace(run, TEXT)
    name = "decoder.blocks.1.cross_attention"
    expected = (importance(traced, name), alignment(traced))
    rows: list[int] = []
    watch = run.model.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    tokens = max(map(len, traced.ids.values()))
    monkeypatch.setattr("clearhead.inspect.answer.MOST_CELLS", 3 * tokens * run.recipe.model.vocab)
    found = (importance(traced, name), alignment(traced))
    watch.remove()
    assert max(rows) == 3
    assert sum(rows) == run.recipe.model.heads + 2 + len(traced.ids["source"]) + 1
    assert found[0] == pytest.approx(expected[0], abs=1e-5)
    assert torch.equal(found[1], expected[1])
