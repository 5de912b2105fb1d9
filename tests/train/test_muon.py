"""Muon: as torch computes it, with updates that are orthogonal."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.train.muon import NEWTON_SCHULZ_STEPS, Muon, orthogonalise


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon to compare with")
def test_muon_is_torchs_but_for_its_rounding() -> None:
    torch.manual_seed(0)
    start = [torch.randn(shape) for shape in ((8, 24), (24, 8), (8, 24), (8, 8))]
    ours, theirs = ([nn.Parameter(t.clone()) for t in start] for _ in range(2))
    one = Muon(ours, lr=0.01, weight_decay=0.1)
    other = torch.optim.Muon(
        theirs, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw", ns_steps=NEWTON_SCHULZ_STEPS
    )
    for _ in range(3):
        for mine, its in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            its.grad = mine.grad.clone()
        one.step()
        other.step()
    for mine, its, before in zip(ours, theirs, start, strict=True):
        moved, difference = (mine - before).norm(), (mine - its).norm()
        assert difference < 0.03 * moved  # bfloat16 has three digits


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 4, 16), (2, 16, 4), (1, 128, 128)])
def test_muons_updates_have_singular_values_of_about_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(shape)
    before, after = torch.linalg.svdvals(matrices), torch.linalg.svdvals(orthogonalise(matrices))
    part = before / before.norm(dim=1, keepdim=True)
    assert after[part > 0.03].min() > 0.6
    assert after.max() < 1.3
