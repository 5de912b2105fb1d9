"""What is written for speed equals the plain line that it replaces, bit for bit."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from clearhead.fast.cpu import search as fast
from clearhead.fast.gpu.fixed import fixed_state
from clearhead.model import State
from tiny_models import encoder_decoder, random_ids


@pytest.mark.parametrize(("size", "k"), [(3, 2), (64, 1), (300, 4), (1000, 5), (1024, 16)])
def test_the_largest_are_those_of_topk(size: int, k: int) -> None:
    """With numbers that are often the same, and with the largest in the last places."""
    for x in (torch.randn(8, size), torch.randint(5, (8, size)).float(), torch.arange(8.0 * size).view(8, size)):
        values, places = fast.topk(x, k)
        assert torch.equal(values, x.topk(k).values)
        assert torch.equal(x.gather(1, places), values)
        assert all(len(set(row)) == k for row in places.tolist())


def test_top_tokens_are_those_of_log_softmax() -> None:
    """Also after the number of rows has changed, and with the memory of another step."""
    top_tokens = fast.TopTokens()
    for rows in (8, 8, 3):
        logits = torch.randn(rows, 500)
        values, tokens = top_tokens(logits, 5)
        expected = logits.log_softmax(-1).topk(5)
        assert torch.equal(values, expected.values)
        assert torch.equal(tokens, expected.indices)


def tensors(state: State) -> list[Tensor]:
    kept = [state.real, state.count, *(t for pair in state.caches for cache in pair for t in cache.store)]
    return kept if state.memory is None else [*kept, state.memory]


def contents(state: State) -> list[Tensor]:
    """What a state holds, without the spare capacity of its caches, which was never written."""
    kept = [state.real, state.count, *(t for pair in state.caches for cache in pair for t in cache.read())]
    return kept if state.memory is None else [*kept, state.memory]


@pytest.mark.parametrize("capacity", [None, 12], ids=["growing", "fixed"])
@torch.inference_mode()
def test_reordering_in_place_is_reordering(capacity: int | None) -> None:
    model, source, prompt = encoder_decoder(), random_ids(3, 5), random_ids(3, 2)
    _, state = model.start(source, prompt, state=(capacity and fixed_state(model, prompt, capacity)) or None)
    state.fork(4)
    model.step(random_ids(12, 1), state)
    for parents in ([[0, 1, 2, 3]] * 3, [[1, 1, 3, 0], [0, 1, 2, 2], [3, 2, 1, 0]]):
        plain = copy.deepcopy(state)
        plain.reorder(torch.tensor(parents))
        addresses = [t.data_ptr() for t in tensors(state)]
        fast.reorder(state, torch.tensor(parents))
        assert all(torch.equal(one, other) for one, other in zip(contents(state), contents(plain), strict=True))
        assert [t.data_ptr() for t in tensors(state)] == addresses
