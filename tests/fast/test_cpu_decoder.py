"""Decoding on a CPU without modules: the numbers of the model, whatever it is made of and whatever becomes of it."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError, Weights
from clearhead.decode.beam import beam
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import decoder_for
from clearhead.fast.cpu import matrices as packed
from clearhead.fast.cpu.decoder import DirectModel
from clearhead.fast.cpu.matrices import pack
from tiny_models import GRID, TINY, decoder_only, encoder_decoder, name, random_ids

SOURCE_REAL = torch.arange(6) < torch.tensor([6, 2, 4])[:, None]
PROMPT_REAL = torch.arange(4) >= torch.tensor([0, 2, 1])[:, None]


def build(family: str, config: ModelConfig = TINY, **changes: Any) -> Any:
    return (encoder_decoder if family == "encoder-decoder" else decoder_only)(config, **changes)


def inputs_of(family: str, padded: bool) -> list[Tensor | None]:
    source, prompt = random_ids(3, 6), random_ids(3, 4)
    real = [SOURCE_REAL, PROMPT_REAL] if padded else [None, None]
    return [source, prompt, *real] if family == "encoder-decoder" else [prompt, real[1]]


@torch.inference_mode()
def assert_same_steps(model: Any, inputs: list[Tensor | None], tolerance: float = 1e-10) -> None:
    """Prefill and steps, before and after a beam is made and its hypotheses change places."""
    direct = DirectModel(model)
    logits, state = model.start(*inputs)
    found, own = direct.start(*inputs)
    for turn in range(4):
        torch.testing.assert_close(found, logits, rtol=tolerance, atol=tolerance)
        if turn == 1:
            state.fork(2)
            own.fork(2)
        if turn == 2:
            parents = torch.tensor([[1, 0], [0, 0], [0, 1]])
            state.reorder(parents)
            own.reorder(parents)
        ids = random_ids(state.count.size(0), 1)
        logits, found = model.step(ids, state), direct.step(ids, own)
    assert torch.equal(own.count, state.count)
    assert torch.equal(own.real, state.real)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("config", GRID[::7], ids=name)
def test_logits_are_those_of_the_model(config: ModelConfig, family: str, padded: bool) -> None:
    assert_same_steps(build(family, config), inputs_of(family, padded))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("settings", [{"window": 3}, {"query_key_norm": True, "position": "rotary"}])
def test_logits_of_imported_decoders(settings: dict[str, Any], padded: bool) -> None:
    assert_same_steps(decoder_only(**settings), inputs_of("decoder-only", padded))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary"])
@torch.inference_mode()
def test_a_model_may_be_converted_between_two_texts(
    position: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MIN_REORDERED_WEIGHTS", 0)
    model = encoder_decoder(position=position).float()
    pack(model)
    inputs = inputs_of("encoder-decoder", padded=True)
    for _ in range(2):
        logits, state = decoder_for(model).start(*inputs)
        expected, own = model.start(*inputs)
        for _ in range(2):
            assert logits.dtype == next(model.parameters()).dtype
            tolerance = 0.05 if logits.dtype == torch.bfloat16 else 1e-5
            torch.testing.assert_close(logits, expected, rtol=tolerance, atol=tolerance)
            ids = random_ids(3, 1)
            logits = decoder_for(model).step(ids, state)
            expected = model.step(ids, own)
        model.to(dtype)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
def test_many_rows_take_the_same_steps(family: str, padded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.fast.cpu.decoder.MANY_ROWS", 1)
    assert_same_steps(build(family), inputs_of(family, padded))


@torch.inference_mode()
def test_padding_may_come_later() -> None:
    model, prompt = decoder_only(position="rotary"), random_ids(2, 3)
    both: tuple[Any, Any] = (model, DirectModel(model))
    states = [each.start(prompt)[1] for each in both]
    for real in (None, torch.tensor([[True], [False]]), None):
        ids = random_ids(2, 1)
        expected, found = (each.step(ids, state, real) for each, state in zip(both, states, strict=True))
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
def test_packed_matrices_take_the_same_steps(family: str, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MIN_REORDERED_WEIGHTS", 0)
    model = build(family, dtype=torch.float32)
    pack(model, weights)
    assert_same_steps(model, inputs_of(family, padded=False), tolerance=1e-4 if weights != "int8" else 0.2)


@pytest.mark.parametrize("search", [greedy, beam, partial(beam, nbest=3)], ids=["greedy", "beam", "nbest"])
@torch.inference_mode()
def test_searches_find_the_same(search: Any) -> None:
    """Sentences end at different steps, so that rows are dropped on the way."""
    model = encoder_decoder()
    inputs = inputs_of("encoder-decoder", padded=True)
    decoder = decoder_for(model)
    assert isinstance(decoder, DirectModel)
    ending = StopCriteria((3, 4, 5, 6), 0, torch.tensor([9, 30, 5]))
    found = search(decoder, decoder.start(*inputs), ending)
    expected = search(model, model.start(*inputs), ending)
    ids = [[each.ids for each in (row if isinstance(row, list) else [row])] for row in found]
    assert ids == [[each.ids for each in (row if isinstance(row, list) else [row])] for row in expected]


def logits_of(decoder: Any, prompt: Tensor) -> Tensor:
    with torch.inference_mode():
        found: Tensor = decoder.start(prompt)[0]
    return found


@pytest.mark.parametrize("change", ["in place", "data", "assigned", "packed"])
def test_weights_that_change_are_decoded_with(change: str) -> None:
    model = decoder_only(dtype=torch.float32)
    prompt = random_ids(2, 5)
    before = logits_of(decoder_for(model), prompt)
    weights = {key: torch.randn_like(value) for key, value in model.state_dict().items()}
    if change == "in place":
        model.load_state_dict(weights)
    elif change == "data":
        for parameter in model.parameters():
            parameter.data.normal_()
    elif change == "assigned":
        model.load_state_dict(weights, assign=True)
        model.tie()
    else:
        pack(model, "int8")
    after = logits_of(decoder_for(model), prompt)
    assert not torch.allclose(after, before, atol=1e-3)
    torch.testing.assert_close(after, logits_of(model, prompt), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("module", ["decoder", "decoder.blocks.0", "decoder.blocks.0.attention.weights", ""])
def test_hooks_are_called(module: str) -> None:
    model = decoder_only()
    seen: list[Any] = []
    hook = model.get_submodule(module).register_forward_hook(lambda *_: seen.append(1))
    assert decoder_for(model) is model
    hook.remove()
    assert isinstance(decoder_for(model), DirectModel)
    model.train()
    assert decoder_for(model) is model


def test_a_model_is_not_kept_alive() -> None:
    model = decoder_only()
    decoder_for(model)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_learned_positions_end() -> None:
    model = decoder_only(position="learned", max_length=6)
    decoder: Any = decoder_for(model)
    _, state = decoder.start(random_ids(1, 5))
    decoder.step(random_ids(1, 1), state)
    with pytest.raises(UserError, match=r"longer than model\.max_length = 6"):
        decoder.step(random_ids(1, 1), state)
