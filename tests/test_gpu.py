"""On a GPU: the same numbers as on the CPU, and a step of fixed shape that is one CUDA graph."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import astuple, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.data.batches import Batch
from clearhead.decode import fast
from clearhead.decode.beam import Beams, beam
from clearhead.decode.fixed import fixed_state
from clearhead.decode.packed import pack
from clearhead.decode.recorded import RecordingModel, decoder_for, set_precision
from clearhead.decode.sampling import Choice
from clearhead.decode.search import Writing, greedy, most_likely, sample, stream
from clearhead.decode.steps import Ending
from clearhead.device import choose_decoding_device
from clearhead.glass.explain import explain
from clearhead.glass.lens import contributions, logit_lens, rollout, saliency
from clearhead.glass.patch import knock_out
from clearhead.glass.trace import trace
from clearhead.kernels.attention import fast_attention
from clearhead.model import DecoderOnly, build_model
from clearhead.model.attention import rotate
from clearhead.model.stack import RotaryPosition
from clearhead.serve.rows import Row, RunningBatch
from clearhead.train.checkpoint import optimiser_tensors
from clearhead.train.run import initial_state, train
from clearhead.train.step import DeviceStep, StepInfo
from tiny_models import GRID, decoder_only, encoder_decoder, name, random_ids
from tiny_runs import TEXT, tiny_run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("config", GRID, ids=name)
@torch.inference_mode()
def test_gpu_is_cpu(config: ModelConfig) -> None:
    model, source, target, real = encoder_decoder(config), random_ids(3, 7), random_ids(3, 6), torch.rand(3, 7) < 0.7
    expected = model(source, target, real)
    model = model.cuda()
    torch.testing.assert_close(model(source.cuda(), target.cuda(), real.cuda()).cpu(), expected, rtol=1e-9, atol=1e-9)
    rough = model.bfloat16()(source.cuda(), target.cuda(), real.cuda()).double().cpu()
    assert (rough - expected).norm() < 0.1 * expected.norm()


@pytest.mark.parametrize("config", GRID[::7], ids=name)
@torch.inference_mode()
def test_a_step_is_a_cuda_graph(config: ModelConfig) -> None:
    """Captured once, replayed for every token: what it gives is the full forward pass."""
    model, ids = decoder_only(config, torch.float32).cuda(), random_ids(2, 20).cuda()
    full = model(ids)
    _, state = model.start(ids[:, :3], state=fixed_state(model, ids, 24))
    token = ids[:, 3:4].clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        warm = model.step(token, state)  # kernels choose their workspaces before capture
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(warm, full[:, 3], rtol=1e-4, atol=1e-4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = model.step(token, state)
    for t in range(4, 20):
        token.copy_(ids[:, t : t + 1])
        graph.replay()
        torch.testing.assert_close(logits, full[:, t], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", ["sentences", "hypotheses", "hypotheses that move"])
@torch.inference_mode()
def test_rows_change_places_between_two_replays(how: str) -> None:
    """As in a beam: the graph goes on with the rows that were selected, source and all."""
    model, source, ids = encoder_decoder(dtype=torch.float32).cuda(), random_ids(2, 5).cuda(), random_ids(2, 12).cuda()
    real = torch.ones(2, 5, dtype=torch.bool, device="cuda")
    rows = torch.tensor([1, 0], device="cuda")
    if how == "sentences":
        real[1, 3:] = False
        _, state = model.start(source, ids[:, :2], real, state=fixed_state(model, ids, 12))
    else:
        source, ids[1, :2] = source[:1], ids[0, :2]
        _, state = model.start(source, ids[:1, :2], real[:1], state=fixed_state(model, ids[:1], 12))
        state.fork(2)
        source = source.expand(2, -1)
    change = {
        "sentences": lambda: state.select(rows),
        "hypotheses": lambda: state.reorder(rows[None]),
        "hypotheses that move": lambda: fast.reorder(state, rows[None]),
    }
    token = ids[:, 2:3].clone()
    model.step(token, state)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = model.step(token, state)
    seen = ids[:, :3]
    for t in range(3, 12):
        token.copy_(ids[:, t : t + 1])
        graph.replay()
        seen = torch.cat([seen, ids[:, t : t + 1]], dim=1)
        torch.testing.assert_close(logits, model(source, seen, real)[:, -1], rtol=1e-4, atol=1e-4)
        if t % 3 == 0:
            change[how]()
            seen, source, real = seen[rows], source[rows], real[rows]


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("make", [encoder_decoder, decoder_only])
@torch.inference_mode()
def test_what_a_gpu_writes_is_what_a_cpu_writes(make: Any, position: str) -> None:
    """However it is looked for, and though rows leave the batch one after the other."""
    model, begins = make(position=position), torch.tensor([0, 4, 2, 5, 3, 0])[:, None]
    inputs = {"prompt": random_ids(6, 6), "prompt_real": torch.arange(6) >= begins}
    inputs |= {"source": random_ids(6, 4)} if make is encoder_decoder else {}
    ending = Ending(tuple(range(40, 50)), pad=0, max_tokens=torch.tensor([20, 5, 1, 20, 12, 20]))
    drawn = partial(sample, choice=Choice(0.9, top_k=30, top_p=0.9, min_p=0.01, repetition_penalty=1.3), seed=1)
    for search in (greedy, drawn, beam, partial(beam, nbest=3)):
        expected = search(model, model.start(**inputs), ending)
        there, given = deepcopy(model).cuda(), {side: ids.cuda() for side, ids in inputs.items()}
        found = search(there, there.start(**given), ending)
        for actual, wanted in zip(found, expected, strict=True):
            assert_written(actual, wanted)


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
    model = build_model(ModelConfig(family=family, bias=bias, **shape | options)).cuda().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    source_real = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    prompt_real = torch.arange(4) >= torch.tensor([0, 2, 1])[:, None]
    inputs = (random_ids(3, 7), random_ids(3, 4), source_real, prompt_real)
    inputs = tuple(t.cuda() for t in (inputs if family == "encoder-decoder" else inputs[1::2]))
    ending = Ending((3, 4, 5, 6), 0, torch.tensor([9, 36, 5], device="cuda"))
    drawn = partial(sample, choice=Choice(0.9, top_k=20, repetition_penalty=1.2), seed=1)
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
    ending = Ending((), 0, 12)
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
    model = build_model(ModelConfig(family=family, position=position, rotary_factor=factor, **shape)).cuda().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    recording = RecordingModel(model, torch.float32)
    for source, prompt in ((7, 4), (5, 32), (30, 3), (70, 75), (75, 70), (65, 66), (40, 1), (60, 1), (50, 1)):
        source_real = (torch.arange(source) < torch.tensor([source, 3])[:, None]).cuda() if masked else None
        prompt_real = (torch.arange(prompt) >= torch.tensor([0, prompt // 3])[:, None]).cuda() if masked else None
        inputs = (random_ids(2, source).cuda(), random_ids(2, prompt).cuda(), source_real, prompt_real)
        inputs = inputs if family == "encoder-decoder" else inputs[1::2]
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


@torch.inference_mode()
def test_weights_that_change_are_decoded_with() -> None:
    model = decoder_only(dtype=torch.float32, d_model=64).cuda()
    set_precision(model, None)
    prompt = random_ids(2, 5).cuda()
    written = []
    for _ in range(2):
        decoder = decoder_for(model)
        assert isinstance(decoder, RecordingModel)
        expected = greedy(model, model.start(prompt), Ending((3,), 0, 12))
        for found, wanted in zip(greedy(decoder, decoder.start(prompt), Ending((3,), 0, 12)), expected, strict=True):
            assert_written(found, wanted, rel=1e-3)
        written.append([hypothesis.ids for hypothesis in expected])
        for parameter in model.parameters():
            parameter.data.normal_(std=0.2)
    assert written[0] != written[1]


def assert_written(actual: Any, wanted: Any, rel: float = 1e-6) -> None:
    """The same hypotheses of a row, one or several, but for the last digits of their scores."""
    pairs = zip(actual, wanted, strict=True) if isinstance(wanted, list) else [(actual, wanted)]
    for one, other in pairs:
        assert astuple(one) == (
            other.ids,
            pytest.approx(other.score, rel),
            pytest.approx(other.log_probability, rel),
            other.ended,
        )


@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "encoder-only"])
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_looking_into_a_gpu_is_looking_into_a_cpu(family: Any, norm_order: str) -> None:
    """Every tensor and the way to one of its numbers, and all lenses, while a head is switched off."""
    stack, head = ("encoder", "classes") if family == "encoder-only" else ("decoder", "vocabulary")
    run = tiny_run(family, dtype=torch.float64, head=head, norm_order=norm_order)
    changes = {"*.blocks.0.attention.weights": knock_out(head=1)}
    expected = trace(run, TEXT, changes=changes)
    found = trace(replace(run, model=deepcopy(run.model).cuda()), TEXT, changes=changes)
    assert found.ids == expected.ids
    same = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
    for each in expected:
        same(found[each], expected[each])
        explained = explain(found, each, [0] * found[each].dim())
        assert explained.changed or explained.value == pytest.approx(explained.traced)
    for look in (logit_lens, partial(rollout, stack=stack), partial(saliency, choice=2)):
        same(look(found), look(expected))
    assert contributions(found, 2).parts == pytest.approx(contributions(expected, 2).parts)


def gpu_recipe(folder: Path, **changes: object) -> Recipe:
    return Recipe(
        name="on-a-gpu",
        data=DataConfig(corpus="phrasebook", size=500, batch_tokens=1024, cache=str(folder / "cache")),
        tokenizer=TokenizerConfig(vocab=500),
        model=ModelConfig(d_model=64, d_ff=128, layers=2, dropout=0.1),
        train=TrainConfig(schedule="constant", device="cuda", **{"steps": 12, "evaluate_every": 6} | changes),
    )


def test_resumed_is_never_stopped_on_a_gpu(tmp_path: Path) -> None:
    """Bit for bit, with dropout and in bfloat16, where the settings ask for it."""
    recipe = gpu_recipe(tmp_path, deterministic=True)
    train(recipe, tmp_path / "whole", quiet=True)
    train(replace(recipe, train=replace(recipe.train, steps=6)), tmp_path / "parts", quiet=True)
    train(recipe, tmp_path / "parts", resume=True, quiet=True)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


def test_too_little_memory_says_which_setting_to_halve(tmp_path: Path) -> None:
    recipe = gpu_recipe(tmp_path)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-4)  # about 14 MB of an H200
    try:
        with pytest.raises(UserError, match=r"data.batch_tokens = 1024; halve it .* data.batch_tokens=512"):
            train(recipe, tmp_path / "run", quiet=True)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_compiled_run_learns_what_one_that_is_not_does(tmp_path: Path) -> None:
    for compiled in ("no", "yes"):
        train(gpu_recipe(tmp_path, compile=compiled, precision="float32"), tmp_path / compiled, quiet=True)
    eager, compiled_weights = (load_file(tmp_path / name / "model.safetensors") for name in ("no", "yes"))
    for key, weight in eager.items():
        torch.testing.assert_close(compiled_weights[key], weight, rtol=2e-2, atol=2e-2)


def test_fewer_bits_are_for_the_cpu_unless_a_device_is_named() -> None:
    assert choose_decoding_device("auto", "float32").type == "cuda"
    assert choose_decoding_device("auto", "int8").type == "cpu"
    with pytest.raises(UserError, match="weights = 'int8': needs a float32 model on a CPU, not float32 on cuda"):
        pack(decoder_only(dtype=torch.float32).cuda(), "int8")


@pytest.mark.parametrize("setting", [{"optimiser": "muon"}, {"average": "ema", "ema": 0.9}], ids=["muon", "ema"])
def test_a_recorded_step_is_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]) -> None:
    """Bit for bit: a CUDA graph launches the same kernels, and draws the same numbers for dropout."""
    recipe = gpu_recipe(tmp_path, steps=60, evaluate_every=30, deterministic=True, **setting)
    train(recipe, tmp_path / "recorded", quiet=True)
    monkeypatch.setattr(DeviceStep, "record", lambda self, *_: None)  # every step kernel by kernel
    train(recipe, tmp_path / "plain", quiet=True)
    recorded, plain = (load_file(tmp_path / name / "model.safetensors") for name in ("recorded", "plain"))
    assert all(torch.equal(recorded[key], plain[key]) for key in plain)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_that_is_not_finite_changes_nothing(tmp_path: Path, optimiser: str) -> None:
    """The GPU decides by itself; the host learns of it later."""
    recipe = gpu_recipe(tmp_path, optimiser=optimiser)
    recipe = replace(recipe, model=replace(recipe.model, vocab=500))
    state = initial_state(recipe)
    ids = torch.randint(5, 500, (4, 6), device="cuda")
    batch = Batch({"source": ids, "source_real": torch.ones_like(ids, dtype=torch.bool), "target": ids}, ids)
    step = DeviceStep(state, recipe.train)
    info = StepInfo(1, 1e-3, batch.tokens, [batch])
    for _ in range(3):  # plain, recorded, replayed
        step(state, info)
    before = {key: p.clone() for key, p in state.model.named_parameters()}
    step(state, info)
    assert any(not torch.equal(p, before[key]) for key, p in state.model.named_parameters())
    for key, p in state.model.named_parameters():
        p.data.copy_(before[key])
    next(state.model.parameters()).data[:] = torch.nan
    after = {key: p.clone() for key, p in state.model.named_parameters()}
    saved = {key: t.clone() for key, t in optimiser_tensors(state.model, state.optimisers).items()}
    step(state, info)
    assert all(torch.equal(p.nan_to_num(7), after[key].nan_to_num(7)) for key, p in state.model.named_parameters())
    assert all(torch.equal(t, saved[key]) for key, t in optimiser_tensors(state.model, state.optimisers).items())
    assert [result.applied for result in step.finish()] == [True, True, True, True, False]


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (30, 17), (64, 64), (1, 40)])
@pytest.mark.parametrize("kind", ["causal", "padding", "full"])
def test_short_attention_is_attention(heads: int, kv_heads: int, queries: int, keys: int, kind: str) -> None:
    if kind == "causal" and queries != keys:
        pytest.skip("a causal mask is for equal lengths")
    q = torch.randn(3, queries, heads, 32, device="cuda").transpose(1, 2).requires_grad_()
    k, v = (torch.randn(3, keys, kv_heads, 32, device="cuda").transpose(1, 2).requires_grad_() for _ in range(2))
    mask = (torch.rand(3, 1, 1, keys, device="cuda") < 0.7).index_fill_(3, torch.tensor(0, device="cuda"), True)
    arguments = (mask if kind == "padding" else None, 0.0, kind == "causal")
    found = fast_attention(q, k, v, *arguments, enable_gqa=heads != kv_heads)
    with sdpa_kernel(SDPBackend.MATH):
        wanted = F.scaled_dot_product_attention(q, k, v, *arguments, enable_gqa=heads != kv_heads)
    gradient = torch.randn_like(wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    pairs = zip(
        torch.autograd.grad(found, (q, k, v), gradient), torch.autograd.grad(wanted, (q, k, v), gradient), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("rows", "slots"), [(1, 300), (2, 8192), (70, 130)])
@pytest.mark.parametrize("kv_heads", [4, 1])
@torch.inference_mode()
def test_token_attention_is_attention(rows: int, slots: int, kv_heads: int) -> None:
    q = torch.randn(rows, 4, 1, 64, device="cuda")
    k, v = torch.randn(2, rows, kv_heads, slots, 64, device="cuda")
    mask = torch.rand(rows, 1, 1, slots, device="cuda") < 0.5
    with sdpa_kernel(SDPBackend.MATH):
        wanted = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=kv_heads != 4)
    torch.testing.assert_close(fast_attention(q, k, v, mask, 0.0, False, kv_heads != 4), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 400), (5, 32_000), (300, 5_001)])
def test_top_tokens_are_those_of_log_softmax(rows: int, vocabulary: int) -> None:
    logits = torch.randn(rows, vocabulary, device="cuda")
    logits[:, -1] += 9  # the largest is in the last block, which is not whole
    values, tokens = fast.TopTokens()(logits, 5)
    expected = logits.log_softmax(-1).topk(5)
    torch.testing.assert_close(values, expected.values)
    assert torch.equal(tokens, expected.indices)


@pytest.mark.parametrize(("width", "end", "nbest"), [(4, (3,), 1), (3, (3, 7), 2), (1, (), 1)])
@torch.inference_mode()
def test_a_step_of_a_beam_in_few_kernels_is_the_step(width: int, end: tuple[int, ...], nbest: int) -> None:
    ending = Ending(end, 0, torch.tensor([5, 9, 30]))
    plain = Beams.begin(torch.zeros(3, 700), ending, width, 0.6, nbest)
    fast_one = deepcopy(plain)
    for field in fields(plain):
        value = getattr(plain, field.name)
        if isinstance(value, torch.Tensor):
            setattr(fast_one, field.name, value.cuda())
    for _ in range(12):
        logits = 2 * torch.randn(3 * width, 700)
        logits[:, list(end)] += 4
        plain.read(logits)
        fast_one.read(logits.cuda())
        known = plain.scores > -torch.inf
        going_on = plain.log_probabilities > -torch.inf
        assert torch.equal(plain.done, fast_one.done.cpu())
        for field_name, some in (("complete", known), ("lengths", known), ("ids", going_on), ("parents", going_on)):
            assert torch.equal(getattr(plain, field_name)[some], getattr(fast_one, field_name).cpu()[some])
        for field_name in ("scores", "log_probabilities", "length"):
            torch.testing.assert_close(
                getattr(plain, field_name), getattr(fast_one, field_name).cpu(), rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("end", [(3,), ()])
@torch.inference_mode()
def test_a_step_of_greedy_search_in_two_kernels_is_the_step(end: tuple[int, ...]) -> None:
    ending = Ending(end, 0, torch.tensor([5, 9, 2]))
    plain = Writing.begin(torch.zeros(3, 9000), ending, most_likely)
    fast_one = Writing.begin(torch.zeros(3, 9000, device="cuda"), ending, most_likely)
    for step in range(7):
        logits = torch.randn(3, 9000)
        logits[1, 3] += 30 if step == 4 else 0
        plain.read(logits)
        fast_one.read(logits.cuda())
        for one, other in zip(plain.tensors(), fast_one.tensors(), strict=True):
            torch.testing.assert_close(one, other.cpu())


@pytest.mark.parametrize("own_positions", [True, False])
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_a_rotation_in_one_kernel_is_the_rotation(heads: int, own_positions: bool) -> None:
    from clearhead.kernels.rotary import fast_rotate

    x = torch.randn(2, 7, heads, 32, device="cuda").transpose(1, 2).requires_grad_()
    positions = torch.randint(50, (2, 7) if own_positions else (7,), device="cuda")
    rotation = RotaryPosition(ModelConfig(d_model=heads * 32, heads=heads))(positions, torch.float32)
    found = fast_rotate(x, rotation)
    wanted = rotate(x, rotation)
    torch.testing.assert_close(found, wanted)
    gradient = torch.randn_like(wanted)
    torch.testing.assert_close(torch.autograd.grad(found, x, gradient), torch.autograd.grad(wanted, x, gradient))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tokens", [3, 1000, 5000])
def test_a_linear_layer_with_cast_weights_is_that_of_autocast(tokens: int, bias: bool) -> None:
    from clearhead.kernels.half_linear import use_half_linears

    plain = torch.nn.Linear(96, 200, bias).cuda()
    layer = deepcopy(plain)
    refresh = use_half_linears(layer)
    for linear in (plain, layer):
        linear.weight.data.normal_(generator=torch.Generator("cuda").manual_seed(1))
    refresh()
    x = torch.randn(2, tokens, 96, device="cuda", requires_grad=True)
    gradient = torch.randn(2, tokens, 200, device="cuda", dtype=torch.bfloat16)
    found, wanted = [], []
    for linear, results in ((layer, found), (plain, wanted)):
        with torch.autocast("cuda", torch.bfloat16):
            y = linear(x)
        results += [y, *torch.autograd.grad(y, [x, *linear.parameters()], gradient)]
    assert torch.equal(found[0], wanted[0])
    for one, other in zip(found[1:], wanted[1:], strict=True):
        assert one.dtype == other.dtype
        assert (one - other).norm() < 0.01 * other.norm()


@pytest.mark.parametrize("options", [{}, {"activation": "swiglu", "bias": False, "kv_heads": 1}], ids=str)
def test_layers_that_share_a_product_are_those_layers(options: dict[str, Any]) -> None:
    """Queries, keys and values of a block: the same logits and gradients, but for rounding."""
    from clearhead.kernels.half_linear import use_half_linears

    plain = encoder_decoder(dtype=torch.float32, d_model=64, position="rotary", norm_order="pre", **options).cuda()
    joined = deepcopy(plain)
    use_half_linears(joined)()
    source, target = random_ids(4, 9).cuda(), random_ids(4, 7).cuda()
    results = []
    for model in (plain.train(), joined.train()):
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(source, target)
        names = [name for name, _ in model.named_parameters() if not name.endswith("key.bias")]  # its gradient is 0
        parameters = [model.get_parameter(name) for name in names]
        results.append([logits, *torch.autograd.grad(logits.float().square().mean(), parameters)])
    for one, other in zip(*results, strict=True):
        assert (one - other).norm() < 0.05 * one.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocab", [500, 32_001])
def test_a_loss_without_whole_logits_is_the_loss(monkeypatch: pytest.MonkeyPatch, vocab: int, smoothing: float) -> None:
    from clearhead.kernels import cross_entropy

    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", 2**22)
    hidden = torch.randn(300, 64, device="cuda", requires_grad=True)
    weight = torch.randn(vocab, 64, device="cuda", requires_grad=True)
    targets = torch.randint(vocab, (300,), device="cuda").index_fill_(0, torch.tensor([3, 9], device="cuda"), -100)
    found = cross_entropy.linear_cross_entropy(hidden, weight, targets, smoothing)
    logits = F.linear(hidden, weight)
    wanted = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found, wanted)
    pairs = zip(
        torch.autograd.grad(found, (hidden, weight)), torch.autograd.grad(wanted, (hidden, weight)), strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


# --- serving ----------------------------------------------------------------------------------------------------------


def written_by_a_server(model: DecoderOnly) -> tuple[list[list[int]], torch.dtype]:
    """The ids of three texts, of which one joins later, and the dtype of the cache."""
    batch = RunningBatch(model, 0)
    rows = [Row([5, 6, 7], 8), Row([8], 8), Row([9, 10], 8)]
    ids: dict[int, list[int]] = {id(row): [] for row in rows}
    with torch.inference_mode():
        for joining in (rows[:2], [], rows[2:], [], []):
            for row, token in batch.advance(joining):
                ids[id(row)].append(token.id)
    assert batch.state is not None
    return list(ids.values()), batch.state.caches[0][0].store[0].dtype


def test_a_server_writes_what_it_writes_on_a_cpu_and_computes_in_the_precision_of_its_weights() -> None:
    model = tiny_run("decoder-only", position="rotary").model
    assert isinstance(model, DecoderOnly)
    expected, _ = written_by_a_server(model)
    on_gpu = deepcopy(model).cuda()
    set_precision(on_gpu, None)
    assert written_by_a_server(on_gpu) == (expected, torch.float32)
    set_precision(on_gpu, torch.bfloat16)
    found, dtype = written_by_a_server(on_gpu)
    assert ([len(ids) for ids in found], dtype) == ([5, 5, 3], torch.bfloat16)
