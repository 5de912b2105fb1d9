"""Every trainable parameter has one optimiser; one without parameters is left out."""

from __future__ import annotations

import pytest
import torch

from clearhead.config import TrainConfig
from clearhead.train.lora import add_lora
from clearhead.train.optimiser import make_optimisers
from tiny_models import encoder_decoder, random_ids


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_every_parameter_has_one_optimiser_and_only_matrices_decay(optimiser: str) -> None:
    model = encoder_decoder(dtype=torch.float32)
    optimisers = make_optimisers(model, TrainConfig(optimiser=optimiser, weight_decay=0.1))
    groups = [group for o in optimisers for group in o.param_groups]
    held = [p for group in groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))
    for group in groups:
        assert all((p.dim() >= 2) == (group["weight_decay"] > 0) for p in group["params"])
    if optimiser == "muon":
        muon = optimisers[1]
        embedding = model.decoder.embedding.weight
        assert all(p is not embedding for group in muon.param_groups for p in group["params"])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("trained", ["LoRA", "matrices of the blocks", "all but those", "norms"])
def test_an_optimiser_without_parameters_is_left_out(optimiser: str, trained: str) -> None:
    model = encoder_decoder(dtype=torch.float32)
    if trained == "LoRA":
        add_lora(model, rank=2, patterns="*.query *.value")
    else:
        for name, p in model.named_parameters():
            in_blocks = ".blocks." in name and p.dim() == 2
            kinds = {"matrices of the blocks": in_blocks, "all but those": not in_blocks, "norms": ".norm." in name}
            p.requires_grad_(kinds[trained])
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimisers = make_optimisers(model, TrainConfig(optimiser=optimiser))
    held = [p for o in optimisers for group in o.param_groups for p in group["params"]]
    assert trainable
    assert sorted(map(id, held)) == sorted(map(id, trainable))
    assert all(group["params"] for o in optimisers for group in o.param_groups)
    before = [p.detach().clone() for p in trainable]
    model(random_ids(2, 5), random_ids(2, 4)).square().sum().backward()
    for each in optimisers:
        each.step()
    assert any(not torch.equal(p, old) for p, old in zip(trainable, before, strict=True))
