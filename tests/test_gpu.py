"""On a GPU: the same numbers as on the CPU, and a step of fixed shape that is one CUDA graph."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import ModelConfig
from tiny_models import GRID, decoder_only, encoder_decoder, name, random_ids

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
    _, state = model.start(ids[:, :3], capacity=24)
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


@pytest.mark.parametrize("same_source", [False, True])
@torch.inference_mode()
def test_rows_change_places_between_two_replays(same_source: bool) -> None:
    """As in a beam: the graph goes on with the rows that were selected, source and all."""
    model, source, ids = encoder_decoder(dtype=torch.float32).cuda(), random_ids(2, 5).cuda(), random_ids(2, 12).cuda()
    real = torch.ones(2, 5, dtype=torch.bool, device="cuda")
    if same_source:
        source[1] = source[0]
    else:
        real[1, 3:] = False
    _, state = model.start(source, ids[:, :2], real, capacity=12)
    token = ids[:, 2:3].clone()
    model.step(token, state)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = model.step(token, state)
    rows, seen = torch.tensor([1, 0], device="cuda"), ids[:, :3]
    for t in range(3, 12):
        token.copy_(ids[:, t : t + 1])
        graph.replay()
        seen = torch.cat([seen, ids[:, t : t + 1]], dim=1)
        torch.testing.assert_close(logits, model(source, seen, real)[:, -1], rtol=1e-4, atol=1e-4)
        if t % 3 == 0:
            state.select(rows, same_source=same_source)
            seen, source, real = seen[rows], source[rows], real[rows]
