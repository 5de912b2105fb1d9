"""A trace has every tensor of the model under its name, and tracing changes no bit of the output."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import Family, ModelConfig, UserError
from clearhead.inspect.kinds import KINDS
from clearhead.inspect.names import names_of
from clearhead.inspect.patch import scale
from clearhead.inspect.trace import trace
from clearhead.runs import Run
from tiny_models import GRID, TINY, name
from tiny_runs import LABELS, TEXT, tiny_run, tokenizers

FAMILIES: tuple[Family, ...] = ("encoder-decoder", "decoder-only", "encoder-only")
TARGET = "la voiture"


def target_of(run: Run) -> str | None:
    return TARGET if run.recipe.model.family == "encoder-decoder" else None


@torch.inference_mode()
def untraced(run: Run, inputs: list[Tensor]) -> Tensor:
    return run.model(*inputs)


@pytest.mark.parametrize("config", GRID[::4], ids=name)
def test_tracing_changes_no_bit(config: ModelConfig) -> None:
    run = tiny_run(FAMILIES[GRID.index(config) // 4 % 3], config)
    traced = trace(run, TEXT, target_of(run))
    before = untraced(run, traced.inputs.tensors(run.device))
    assert torch.equal(traced["head.logits"], before)
    assert torch.equal(untraced(run, traced.inputs.tensors(run.device)), before)
    assert not any(module._forward_hooks for module in run.model.modules())  # nothing stays behind


@pytest.mark.parametrize("config", [GRID[5], GRID[70], replace(TINY, position="rotary", norm_order="pre")], ids=name)
@pytest.mark.parametrize("family", [*FAMILIES, "classes", "embedding"])
def test_nothing_the_model_computes_is_left_out(family: Any, config: ModelConfig) -> None:
    heads = family in ("classes", "embedding")
    run = tiny_run("encoder-only", config, head=family, head_dense=True) if heads else tiny_run(family, config)
    traced = trace(run, TEXT, target_of(run))
    assert sorted(traced) == sorted(names_of(run.model, run.recipe.model))
    seen: dict[str, Tensor] = {}

    def keep(where: str) -> Any:
        return lambda _module, _inputs, output: seen.update({where: output})

    for where, module in run.model.named_modules():
        if where not in traced:
            module.register_forward_hook(keep(where))
    again = trace(run, TEXT, target_of(run))
    known = {tensor.data_ptr() for tensor in again.values()}
    assert len(seen) >= 15
    for where, output in seen.items():  # every other module gives a tensor that has a name already
        assert output.data_ptr() in known, where


@pytest.mark.parametrize("family", FAMILIES)
def test_axes_and_labels_fit_the_tensors(family: Family) -> None:
    run = tiny_run(family, kv_heads=2, position="rotary")
    for traced in (trace(run, TEXT, target_of(run)), trace(tiny_run(family), TEXT, target_of(run))):
        for where in traced:
            named = traced.named(where)
            assert [len(labels) for labels in named.labels] == list(named.value.shape), where
            assert len(named.axes) == len(named.sides) == named.value.dim()


def test_labels_are_tokens_heads_words_and_classes() -> None:
    run = tiny_run(kv_heads=2)
    traced = trace(run, TEXT, TARGET)
    weights = traced.named("decoder.blocks.0.cross_attention.weights")
    assert weights.axes == ("batch", "head", "query", "key")
    assert weights.sides == ("", "", "target", "source")
    assert (
        weights.labels[2]
        == traced.tokens["target"]
        == ("<start>", *map(tokenizers().target.piece, traced.ids["target"][1:]))
    )
    assert weights.labels[3] == traced.tokens["source"]
    assert traced.named("decoder.blocks.0.attention.keys").labels[1] == ("heads 0–1", "heads 2–3")
    assert traced.named("head.logits").labels[2][run.tokenizers.target.end] == "<end>"
    classes = trace(tiny_run("encoder-only", head="classes"), TEXT)
    assert classes.named("head.logits").labels[1] == LABELS
    assert classes.named("pooled").axes == ("batch", "channel")


def test_a_model_may_have_more_rows_than_its_tokenizer_has_words() -> None:
    run = tiny_run("decoder-only")
    wide = tiny_run("decoder-only", wider=7)
    assert (
        trace(wide, TEXT).named("head.logits").labels[2][run.recipe.model.vocab] == f"unused {run.recipe.model.vocab}"
    )


def test_ids_are_framed_as_in_training() -> None:
    both = tokenizers().target
    ids = tuple(both.encode(TEXT))
    assert trace(tiny_run(), TEXT, TARGET).ids == {
        "source": (*ids, both.end),
        "target": (both.start, *both.encode(TARGET)),
    }
    assert trace(tiny_run("decoder-only"), TEXT).ids == {"target": (both.start, *ids)}
    assert trace(tiny_run("decoder-only"), TEXT, TARGET).ids == {"target": (both.start, *ids, *both.encode(TARGET))}
    assert trace(tiny_run("encoder-only"), TEXT).ids == {"source": (both.start, *ids, both.end)}
    chat = trace(tiny_run("decoder-only", task="chat"), TEXT)
    assert chat.ids == {"target": (both.user, *ids, both.end, both.assistant)}
    hidden = trace(tiny_run("encoder-only"), "the <mask> car").ids["source"]
    plain = trace(tiny_run("encoder-only", head="classes"), "the <mask> car").ids["source"]
    assert both.mask not in plain  # only a model that guesses words has hidden ones
    assert hidden == (both.start, *both.encode("the"), both.mask, *both.encode(" car"), both.end)


def test_without_a_target_the_model_writes_its_own() -> None:
    run = tiny_run(position="learned", max_length=20)
    traced = trace(run, TEXT)
    written, logits = traced.ids["target"][1:], traced["head.logits"][0]
    assert 0 < len(written) < 20
    assert logits.argmax(-1).tolist()[: len(written)] == list(written)  # greedy: each token is the likeliest one
    assert traced.target_text == run.tokenizers.target.decode(written)


def test_only_keeps_what_was_asked_for() -> None:
    run = tiny_run()
    whole = trace(run, TEXT, TARGET)
    some = trace(run, TEXT, TARGET, only=["encoder.*.weights", "head.logits"])
    assert some.names() == ["encoder.blocks.0.attention.weights", "encoder.blocks.1.attention.weights", "head.logits"]
    assert some.bytes() < whole.bytes() / 5
    for where in some:
        assert torch.equal(some[where], whole[where])
    with pytest.raises(UserError, match=r"no 'encoder.blocks.0.attention.weight'; did you mean .*weights"):
        trace(run, TEXT, only=["encoder.blocks.0.attention.weight"])


def test_nothing_is_computed_after_the_last_tensor_that_was_asked_for() -> None:
    run, reached = tiny_run(), []
    run.model.decoder.blocks[1].register_forward_hook(lambda *_: reached.append("decoder.blocks.1"))
    whole, some = (trace(run, TEXT, TARGET, only=only) for only in (["*"], ["decoder.blocks.0.attention.keys"]))
    assert reached == ["decoder.blocks.1"]
    assert torch.equal(some["decoder.blocks.0.attention.keys"], whole["decoder.blocks.0.attention.keys"])


def test_the_tree_lists_names_with_shapes() -> None:
    tree = trace(tiny_run("decoder-only"), TEXT).tree().splitlines()
    assert tree[:3] == ["decoder", "  embedding [1, 8, 16]", "  position [8, 16]"]
    assert "        weights [1, 4, 8, 8]" in tree
    assert tree[-2:] == ["head", "  logits [1, 8, 300]"]


def test_a_with_frees_the_tensors() -> None:
    with trace(tiny_run("decoder-only"), TEXT) as traced:
        assert len(traced) > 20
    assert len(traced) == traced.bytes() == 0
    with pytest.raises(UserError, match=r"the trace has no 'head.logits'"):
        traced["head.logits"]


def test_gradients_go_from_any_tensor_to_any_before_it() -> None:
    for family in FAMILIES:
        run = tiny_run(family, dtype=torch.float64)
        plain = trace(run, TEXT, target_of(run))
        traced = plain.again(gradients=True)
        torch.testing.assert_close(traced["head.logits"], plain["head.logits"])
        floating = {where: tensor for where, tensor in traced.items() if tensor.requires_grad}
        assert plain.keys() - floating.keys() == {n for n in plain if n.endswith((".mask", ".position"))}
        logit = floating.pop("head.logits")[0, -1, 5]
        gradients = torch.autograd.grad(logit, list(floating.values()))
        for where, gradient in zip(floating, gradients, strict=True):
            assert gradient.any(), where


def test_a_compiled_model_can_be_traced() -> None:
    run = tiny_run("decoder-only")
    expected = trace(run, TEXT)
    run.model.compile_blocks()
    traced = trace(run, TEXT)
    assert traced.names() == expected.names()
    assert all(torch.equal(traced[where], expected[where]) for where in expected)


def test_traces_of_several_threads_do_not_mix() -> None:
    run = tiny_run()
    found: dict[float, list[torch.Tensor]] = {}

    def look(factor: float) -> None:
        for _ in range(5):
            found.setdefault(factor, []).append(
                trace(run, TEXT, TARGET, changes={"encoder.embedding": scale(factor)})["encoder.embedding"]
            )

    threads = [threading.Thread(target=look, args=(factor,)) for factor in (0.0, 1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((tensor == 0).all() for tensor in found[0.0])
    assert all(torch.equal(two, 2 * one) for one, two in zip(found[1.0], found[2.0], strict=True))


def test_half_precision_is_shown_as_float32() -> None:
    run = tiny_run("decoder-only", dtype=torch.bfloat16)
    assert all(tensor.dtype == torch.float32 for tensor in trace(run, TEXT).values())


def test_an_encoder_only_model_takes_no_target() -> None:
    with pytest.raises(UserError, match="reads one text; leave the target out"):
        trace(tiny_run("encoder-only"), TEXT, TARGET)


def test_every_name_ends_in_a_kind() -> None:
    assert {kind.name for kind in KINDS} >= {where.rpartition(".")[2] for where in trace(tiny_run(), TEXT, TARGET)}
