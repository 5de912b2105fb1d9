"""A state of fixed size that takes over the tokens of another one continues as that one does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.fast.gpu.fixed import FixedState
from clearhead.model import State
from tiny_models import decoder_only, encoder_decoder, random_ids


@pytest.mark.parametrize("options", [{}, {"kv_heads": 2, "position": "rotary"}, {"window": 3}], ids=str)
@pytest.mark.parametrize("family", [encoder_decoder, decoder_only])
@torch.inference_mode()
def test_a_prefill_moves_into_memory_of_fixed_size(family: Any, options: dict[str, Any]) -> None:
    if "window" in options and family is encoder_decoder:
        pytest.skip("only language models have a window")
    model = family(**options)
    fixed: FixedState | None = None
    for begins in ([0, 2, 1], [3, 0, 0]):  # the second search finds the memory of the first
        prompt_real = torch.arange(4) >= torch.tensor(begins)[:, None]
        source_real = torch.arange(6) < torch.tensor([6, 3, 4])[:, None]
        inputs = (random_ids(3, 6), random_ids(3, 4), source_real, prompt_real)
        _, state = model.start(*(inputs if family is encoder_decoder else inputs[1::2]))
        state.fork(2)
        fixed = fixed or FixedState.for_search(state, 12, 8)
        fixed.copy_from(state)
        check_steps(model, state, fixed)


def check_steps(model: Any, state: State, fixed: FixedState) -> None:
    """Five steps give the same logits, while hypotheses change places."""
    addresses = [t.data_ptr() for cache, _ in fixed.caches for t in cache.store]
    for _ in range(5):
        ids = random_ids(6, 1)
        torch.testing.assert_close(model.step(ids, fixed), model.step(ids, state))
        parents = torch.randint(2, (3, 2))
        state.reorder(parents)
        fixed.reorder(parents)
    assert [t.data_ptr() for cache, _ in fixed.caches for t in cache.store] == addresses
