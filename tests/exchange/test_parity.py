"""Imported models compute what `transformers` computes: logits, gradients, greedy and beam search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.decode.beam import beam
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.exchange.huggingface import import_model
from clearhead.exchange.tables import ARCHITECTURES
from clearhead.runs import Run, open_run
from peer_models import DECODERS, ENCODERS, TRANSLATORS, assert_close, build, each, random_ids, save


def imported(peer: Any, folder: Path, **options: Any) -> Run:
    import_model(str(save(peer, folder / "peer", **options)), folder / "run")
    return open_run(folder / "run")


def assert_same_gradients(run: Run, peer: Any) -> None:
    """Our gradients under their names are their gradients."""
    architecture = ARCHITECTURES[peer.config.model_type]
    gradients = {name: parameter.grad for name, parameter in run.model.named_parameters()}
    task = run.recipe.data.task
    found = architecture.write_weights(gradients, run.recipe.model, task)
    for name, ours in found.items():
        if name == "final_logits_bias":
            continue  # a buffer there
        theirs = peer.get_parameter(name).grad
        unused = 2 if "roberta" in peer.config.model_type and "position_emb" in name else 0
        assert_close(ours.reshape(theirs.shape)[unused:], theirs[unused:])


def until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(2)] if 2 in ids else ids


@each(DECODERS)
def test_language_models_have_the_same_logits_and_gradients(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    run = imported(peer, tmp_path)
    ids = random_ids(2, 24)
    run.model.requires_grad_(True)
    ours = run.model(ids)
    theirs = peer(input_ids=ids).logits
    assert_close(ours, theirs)
    ours.square().mean().backward()
    theirs.square().mean().backward()
    assert_same_gradients(run, peer)


@each(DECODERS)
@torch.no_grad()
def test_language_models_write_the_same(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    run: Any = imported(peer, tmp_path)
    prompt = random_ids(2, 5)
    ending = StopCriteria((2,), 0, 20)
    settings: dict[str, Any] = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "eos_token_id": 2}
    settings["attention_mask"] = torch.ones_like(prompt)
    theirs = peer.generate(prompt, **settings)[:, 5:].tolist()
    for found, expected in zip(greedy(run.model, run.model.start(prompt), ending), theirs, strict=True):
        assert found.ids == until_end(expected)
    for alpha in (0.0,):  # their penalty is another function of the length unless the exponent is 0
        theirs = peer.generate(prompt, num_beams=4, length_penalty=alpha, early_stopping="never", **settings)
        hypotheses = beam(run.model, run.model.start(prompt), ending, 4, alpha, 1)
        for [best], expected in zip(hypotheses, theirs[:, 5:].tolist(), strict=True):
            assert best.ids == until_end(expected)


@each(ENCODERS)
def test_encoders_have_the_same_outputs_and_gradients(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    run = imported(peer, tmp_path)
    ids = random_ids(3, 20)
    real = torch.arange(20) < torch.tensor([[20], [7], [13]])
    run.model.requires_grad_(True)
    given = ids if "roberta" not in peer.config.model_type else ids.masked_fill(~real, 1)
    ours = run.model(given, real)
    output = peer(input_ids=given, attention_mask=real.long())
    theirs = output.pooler_output if kind[1].endswith("BertModel") else output.logits
    rows = real if theirs.dim() == 3 else slice(None)
    assert_close(ours[rows], theirs[rows])
    ours[rows].square().mean().backward()
    theirs[rows].square().mean().backward()
    assert_same_gradients(run, peer)


@each(TRANSLATORS)
def test_translators_have_the_same_logits_and_gradients(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    run = imported(peer, tmp_path)
    source, target = random_ids(3, 20), random_ids(3, 11)
    real = torch.arange(20) < torch.tensor([[20], [7], [13]])
    run.model.requires_grad_(True)
    ours = run.model(source, target, real)
    theirs = peer(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).logits
    assert_close(ours, theirs)
    ours.square().mean().backward()
    theirs.square().mean().backward()
    assert_same_gradients(run, peer)


@each(TRANSLATORS)
@torch.no_grad()
def test_translators_write_the_same(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    peer.generation_config.bad_words_ids = [[0]]
    run = imported(peer, tmp_path)
    source = random_ids(3, 9)
    real = torch.arange(9) < torch.tensor([[9], [4], [6]])
    start = torch.zeros(3, 1, dtype=torch.long)
    ending = StopCriteria((2,), 0, 20)
    settings = {"max_new_tokens": 20, "do_sample": False, "attention_mask": real.long()}
    theirs = peer.generate(source, num_beams=1, **settings)[:, 1:].tolist()
    for found, expected in zip(greedy(run.model, run.model.start(source, start, real), ending), theirs, strict=True):
        assert found.ids == until_end(expected)
    theirs = peer.generate(source, num_beams=4, length_penalty=0.0, early_stopping="never", **settings)[:, 1:].tolist()
    hypotheses = beam(run.model, run.model.start(source, start, real), ending, 4, 0.0, 1)
    for [best], expected in zip(hypotheses, theirs, strict=True):
        assert best.ids == until_end(expected)


def test_generation_settings_are_told(tmp_path: Path) -> None:
    peer = build(TRANSLATORS["marian"])
    peer.generation_config.num_beams = 6
    peer.generation_config.length_penalty = 0.8
    [told] = import_model(str(save(peer, tmp_path / "peer")), tmp_path / "run")
    assert "--beam 6 --length-penalty 0.8 is close to it: transformers divides by n^a" in told


def test_labels_keep_their_names(tmp_path: Path) -> None:
    run = imported(build(ENCODERS["bert classes"]), tmp_path)
    assert run.labels == ("bad", "good", "so so")


def test_sharded_weights_in_half_precision(tmp_path: Path) -> None:
    peer = build(DECODERS["llama"]).to(torch.bfloat16)
    run = imported(peer, tmp_path, max_shard_size="10KB")
    assert len(list((tmp_path / "peer").glob("*.safetensors"))) > 2
    ids = random_ids(1, 8)
    assert_close(run.model(ids), peer.float()(input_ids=ids).logits)


def test_slower_rotations_of_long_texts(tmp_path: Path) -> None:
    peer = build(DECODERS["llama 3.1"])
    run = imported(peer, tmp_path)
    ids = random_ids(1, 60)
    assert (run.recipe.model.rotary_factor, run.recipe.model.rotary_length) == (4.0, 20)
    assert_close(run.model(ids), peer(input_ids=ids).logits)
    linear = {"rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0}}
    config, model, settings = DECODERS["llama"]
    peer = build((config, model, settings | linear))
    run = imported(peer, tmp_path / "linear")
    assert_close(run.model(ids), peer(input_ids=ids).logits)


def test_a_sliding_window_as_long_as_the_texts_is_none(tmp_path: Path) -> None:
    config, model, settings = DECODERS["mistral"]
    run = imported(build((config, model, settings | {"sliding_window": 64})), tmp_path)
    assert run.recipe.model.window == 0


def test_a_sliding_window_in_some_layers_is_refused(tmp_path: Path) -> None:
    config, model, settings = DECODERS["qwen2"]
    window = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
    with pytest.raises(ValueError, match="max_window_layers = 1 cannot be expressed here"):
        imported(build((config, model, settings | window)), tmp_path)
