"""Decoding and serving on a GPU: what a CPU writes, and a step of fixed shape that is one CUDA graph.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from clearhead.config import ModelConfig, UserError
from clearhead.decode.beam import beam
from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.search import greedy, sample
from clearhead.decode.steps import StopCriteria
from clearhead.device import choose_decoding_device
from clearhead.fast.cpu.matrices import pack
from clearhead.fast.gpu.recorded import set_precision
from clearhead.model import DecoderOnly
from clearhead.serve.rows import Row, RunningBatch
from fixed_states import fixed_state
from on_gpu import assert_written, needs_gpu
from tiny_models import GRID, decoder_only, encoder_decoder, name, random_ids
from tiny_runs import tiny_run

pytestmark = needs_gpu


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


@pytest.mark.parametrize("how", ["sentences", "hypotheses"])
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
            state.select(rows) if how == "sentences" else state.reorder(rows[None])
            seen, source, real = seen[rows], source[rows], real[rows]


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("make", [encoder_decoder, decoder_only])
@torch.inference_mode()
def test_what_a_gpu_writes_is_what_a_cpu_writes(make: Any, position: str) -> None:
    """However it is looked for, and though rows leave the batch one after the other."""
    model, begins = make(position=position), torch.tensor([0, 4, 2, 5, 3, 0])[:, None]
    inputs = {"prompt": random_ids(6, 6), "prompt_real": torch.arange(6) >= begins}
    inputs |= {"source": random_ids(6, 4)} if make is encoder_decoder else {}
    ending = StopCriteria(tuple(range(40, 50)), pad=0, max_tokens=torch.tensor([20, 5, 1, 20, 12, 20]))
    drawn = partial(
        sample, choice=SamplingSettings(0.9, top_k=30, top_p=0.9, min_p=0.01, repetition_penalty=1.3), seed=1
    )
    for search in (greedy, drawn, beam, partial(beam, nbest=3)):
        expected = search(model, model.start(**inputs), ending)
        there, given = deepcopy(model).cuda(), {side: ids.cuda() for side, ids in inputs.items()}
        found = search(there, there.start(**given), ending)
        for actual, wanted in zip(found, expected, strict=True):
            assert_written(actual, wanted)


def test_fewer_bits_are_for_the_cpu_unless_a_device_is_named() -> None:
    assert choose_decoding_device("auto", "float32").type == "cuda"
    assert choose_decoding_device("auto", "int8").type == "cpu"
    with pytest.raises(UserError, match="weights = 'int8': needs a float32 model on a CPU, not float32 on cuda"):
        pack(decoder_only(dtype=torch.float32).cuda(), "int8")


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
