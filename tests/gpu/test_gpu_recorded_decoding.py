"""Recorded decoding on a GPU: a replayed search or prefill computes what the plain one does.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from clearhead.config import ModelConfig
from clearhead.decode.beam import beam
from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.search import greedy, sample, stream
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import decoder_for
from clearhead.fast.gpu.recorded import RecordingModel, set_precision
from clearhead.model import build_model
from on_gpu import assert_written, needs_gpu
from tiny_models import decoder_only, random_ids

pytestmark = needs_gpu


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"position": "learned", "activation": "gelu-tanh", "norm_order": "pre"},
        {"position": "rotary", "activation": "swiglu", "norm": "rms", "norm_order": "pre", "kv_heads": 1},
        {"position": "sinusoidal", "activation": "relu", "norm_order": "post"},
        {"position": "none", "activation": "gelu", "norm_order": "pre", "kv_heads": 2},
        {"position": "rotary", "heads": 8},  # heads of 8 channels: too small for the kernels
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
@torch.inference_mode()
def test_a_recorded_search_is_the_search(family: Any, options: dict[str, Any], bias: bool) -> None:
    """The first of a size kernel by kernel and recorded, the second replayed."""
    shape = {"vocab": 300, "d_model": 64, "d_ff": 96, "heads": 4, "layers": 2, "dropout": 0.0, "max_length": 40}
    model: Any = build_model(ModelConfig(family=family, bias=bias, **shape | options)).cuda().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    source_real = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    prompt_real = torch.arange(4) >= torch.tensor([0, 2, 1])[:, None]
    given = (random_ids(3, 7), random_ids(3, 4), source_real, prompt_real)
    inputs = tuple(t.cuda() for t in (given if family == "encoder-decoder" else given[1::2]))
    ending = StopCriteria((3, 4, 5, 6), 0, torch.tensor([9, 36, 5], device="cuda"))
    drawn = partial(sample, choice=SamplingSettings(0.9, top_k=20, repetition_penalty=1.2), seed=1)
    recording = RecordingModel(model, torch.float32)
    assert (recording.fused is None) == (model.config.head_size < 16)
    for search in (greedy, drawn, beam, partial(beam, nbest=3), partial(beam, width=2)):
        expected = search(model, model.start(*inputs), ending)
        for _ in range(2):
            for found, wanted in zip(search(recording, recording.start(*inputs), ending), expected, strict=True):
                assert_written(found, wanted, rel=1e-3)


@torch.inference_mode()
def test_two_searches_at_the_same_time() -> None:
    """Two streams of one size, token by token in turns: neither writes into the memory of the other."""
    model = decoder_only(dtype=torch.float32, d_model=64).cuda()
    recording = RecordingModel(model, torch.float32)
    prompts = [random_ids(1, 5).cuda() for _ in range(2)]
    ending = StopCriteria((), 0, 12)
    expected = [greedy(model, model.start(prompt), ending)[0].ids for prompt in prompts]
    for _ in range(2):
        streams = []
        written = []
        for prompt in prompts:
            streams.append(stream(recording, recording.start(prompt), ending))
            written.append([int(next(streams[-1]))])
        for ids in zip(*streams, strict=True):
            for row, number in zip(written, ids, strict=True):
                row.append(int(number))
        assert written == expected


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("position", ["learned", "rotary"])
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
@torch.inference_mode()
def test_a_recorded_prefill_is_the_prefill(family: Any, position: str, masked: bool) -> None:
    """The first of a size kernel by kernel, the second recorded, all later ones replayed, whatever their lengths."""
    shape = {"vocab": 300, "d_model": 64, "d_ff": 96, "heads": 4, "layers": 2, "dropout": 0.0, "max_length": 75}
    factor = 2.0 if position == "rotary" else 1.0
    model: Any = build_model(ModelConfig(family=family, position=position, rotary_factor=factor, **shape)).cuda().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    recording = RecordingModel(model, torch.float32)
    for source, prompt in ((7, 4), (5, 32), (30, 3), (70, 75), (75, 70), (65, 66), (40, 1), (60, 1), (50, 1)):
        source_real = (torch.arange(source) < torch.tensor([source, 3])[:, None]).cuda() if masked else None
        prompt_real = (torch.arange(prompt) >= torch.tensor([0, prompt // 3])[:, None]).cuda() if masked else None
        given = (random_ids(2, source).cuda(), random_ids(2, prompt).cuda(), source_real, prompt_real)
        inputs = given if family == "encoder-decoder" else given[1::2]
        wanted, expected = model.start(*inputs)
        found, state = recording.start(*inputs)
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)
        assert state.length == expected.length
        assert torch.equal(state.count, expected.count)
        assert torch.equal(state.real, expected.real)
        seen = expected.real[:, None, :, None]
        for (own, _), (other, _) in zip(state.caches, expected.caches, strict=True):
            for one, two in zip(own.read(), other.read(), strict=True):
                torch.testing.assert_close(one * seen, two * seen, rtol=1e-3, atol=1e-3)
    assert recording.prefills is not None
    assert all(prefill.graph is not None for _, prefill in recording.prefills.sizes.values())


@pytest.mark.parametrize("fused", [True, False])
@torch.inference_mode()
def test_weights_that_change_are_decoded_with(fused: bool) -> None:
    model = decoder_only(dtype=torch.float32, d_model=64).cuda()
    set_precision(model, None, fused)
    prompt = random_ids(2, 5).cuda()
    written = []
    for _ in range(2):
        decoder = decoder_for(model)
        assert isinstance(decoder, RecordingModel)
        assert (decoder.fused is not None) == fused
        expected = greedy(model, model.start(prompt), StopCriteria((3,), 0, 12))
        for found, wanted in zip(
            greedy(decoder, decoder.start(prompt), StopCriteria((3,), 0, 12)), expected, strict=True
        ):
            assert_written(found, wanted, rel=1e-3)
        written.append([hypothesis.ids for hypothesis in expected])
        for parameter in model.parameters():
            parameter.data.normal_(std=0.2)
    assert written[0] != written[1]


@pytest.mark.parametrize("name", ["", "decoder.blocks.0.attention", "decoder.blocks.0.attention.weights"])
def test_a_model_with_hooks_is_decoded_with_itself(name: str) -> None:
    """A patch of any module changes what is written; FSDP gathers weights by hooks."""
    model = decoder_only(dtype=torch.float32, d_model=64).cuda()
    assert isinstance(decoder_for(model), RecordingModel)
    hook = model.get_submodule(name).register_forward_hook(lambda *_: None)
    assert decoder_for(model) is model
    hook.remove()
    assert isinstance(decoder_for(model), RecordingModel)
