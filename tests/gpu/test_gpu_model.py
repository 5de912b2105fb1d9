"""The model on a GPU: the numbers of the CPU, and every tensor that a trace shows.

Runs on a bare machine too: see tests/helpers/on_gpu.py.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from clearhead.config import ModelConfig
from clearhead.inspect.explain import explain
from clearhead.inspect.lens import contributions, logit_lens, rollout, saliency
from clearhead.inspect.patch import knock_out
from clearhead.inspect.trace import trace
from on_gpu import needs_gpu
from tiny_models import GRID, encoder_decoder, name, random_ids
from tiny_runs import TEXT, tiny_run

pytestmark = needs_gpu


@pytest.mark.parametrize("config", GRID, ids=name)
@torch.inference_mode()
def test_gpu_is_cpu(config: ModelConfig) -> None:
    torch.manual_seed(0)  # on a bare machine there is no conftest.py that does it
    model, source, target, real = encoder_decoder(config), random_ids(3, 7), random_ids(3, 6), torch.rand(3, 7) < 0.7
    expected = model(source, target, real)
    model = model.cuda()
    torch.testing.assert_close(model(source.cuda(), target.cuda(), real.cuda()).cpu(), expected, rtol=1e-9, atol=1e-9)
    rough = model.bfloat16()(source.cuda(), target.cuda(), real.cuda()).double().cpu()
    assert (rough - expected).norm() < 0.15 * expected.norm()


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
