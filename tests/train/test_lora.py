"""LoRA: adapters start at zero, only they get gradients, and they merge into the same model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.recipes import load_recipe
from clearhead.runs import read_weights
from clearhead.train.lora import ADAPTER, add_lora, merge_adapter, merge_lora
from clearhead.train.run import train
from clearhead.train.trained import freeze
from tiny_models import assert_same, decoder_only, random_ids, shake


def test_adapters_start_as_nothing_and_merge_into_the_same_model() -> None:
    model, ids = decoder_only(), random_ids(2, 5)
    before, names = model(ids), list(model.state_dict())
    add_lora(model, rank=2, patterns="*.query *.value")
    assert torch.equal(model(ids), before)
    learning = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(learning) == 2 * 2 * 2  # two blocks, two matrices, A and B
    assert all("correction" in name for name in learning)
    shake(torch.nn.ParameterList(p for p in model.parameters() if p.requires_grad))
    corrected = model(ids)
    assert not torch.allclose(corrected, before)
    merge_lora(model)
    assert_same(model(ids), corrected)
    assert list(model.state_dict()) == names


def test_only_adapters_get_gradients() -> None:
    model = decoder_only()
    add_lora(model, rank=2, patterns="*.feed_forward.*")
    model(random_ids(2, 5)).square().sum().backward()
    assert all((p.grad is not None) == ("correction" in name) for name, p in model.named_parameters())


@pytest.mark.parametrize("tied", ["output", "none"])
def test_an_embedding_is_trained_whole_and_tied_logits_change_with_it(tied: Any) -> None:
    model, ids = decoder_only(tied=tied), random_ids(2, 5)
    add_lora(model, rank=2, patterns="*")
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "decoder.embedding.weight" in learning
    assert any(name.startswith("head.") for name in learning) == (tied == "none")
    shake(torch.nn.ParameterList(p for p in model.parameters() if p.requires_grad))
    trained = model(ids)
    merge_lora(model)
    assert_same(model(ids), trained)


@pytest.mark.parametrize("patterns", ["*.querry", "*.value *.querry", ""])
def test_a_pattern_that_matches_nothing_is_refused(patterns: str) -> None:
    wrong = re.escape(patterns.removeprefix("*.value "))
    with pytest.raises(UserError, match=rf"train\.lora_on: no matrix matches '{wrong}'; .*blocks\.0\.attention\.query"):
        add_lora(decoder_only(), rank=2, patterns=patterns)


@pytest.mark.parametrize("rank", [17, 10**20])
def test_a_rank_that_no_matrix_has_is_refused(rank: int) -> None:
    with pytest.raises(UserError, match=rf"train\.lora = {rank}: no matrix .* has a rank above 16; lower"):
        add_lora(decoder_only(d_model=16), rank, "*.query")
    add_lora(decoder_only(d_model=16), 16, "*.query")


def test_what_is_frozen_gets_no_adapter() -> None:
    model = decoder_only(tied="none")
    freeze(model, "*.embedding.* head.* decoder.blocks.0.*")
    add_lora(model, rank=2, patterns="*")
    learning = [name for name, p in model.named_parameters() if p.requires_grad]
    assert learning
    assert all(name.startswith("decoder.blocks.1.") for name in learning)
    with pytest.raises(UserError, match=r"train\.lora_on = 'head\.\*': train\.freeze excludes all"):
        add_lora(model, rank=2, patterns="head.*")


def test_adapters_of_another_task_bring_its_head(tmp_path: Path) -> None:
    small = ["data.size=40", "tokenizer.vocab=300", "model.d_model=16", "model.d_ff=32", "model.heads=2"]
    small += ["train.steps=2", "train.warmup=1", "train.samples=0", "train.device=cpu", f"data.cache={tmp_path}/cache"]
    base = tmp_path / "base"
    train(load_recipe("masked-stories", [*small, "model.head_bias=true"]), base, quiet=True)
    lora = [f"train.init={base}", f"tokenizer.path={base}", "train.lora=2", "model.head_bias=false"]
    for matrices in ("*.query", "*"):
        tuned = tmp_path / f"tuned {len(matrices)}"
        more = ["train.freeze=", f"train.lora_on={matrices}"]
        train(load_recipe("reviews-from-stories", [*small, *lora, *more]), tuned, quiet=True)
        weights = read_weights(tuned / "model.safetensors")
        merged = merge_adapter(base, tuned / ADAPTER)
        assert merged.keys() == weights.keys()  # without the bias of the base's head
        for name, tensor in weights.items():
            torch.testing.assert_close(merged[name], tensor)


@pytest.mark.parametrize("matrices", ["*.query *.value", "*.query decoder.embedding"])
def test_a_run_saves_its_adapters_alone_and_they_merge_into_its_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], matrices: str
) -> None:
    small = [
        "data.size=200",
        "tokenizer.vocab=400",
        "model.d_model=32",
        "model.d_ff=64",
        "train.steps=3",
        "train.samples=0",
    ]
    small += ["train.device=cpu", f"data.cache={tmp_path / 'cache'}"]
    base = tmp_path / "base"
    train(load_recipe("phrasebook", small), base, quiet=True)
    tuned = tmp_path / "tuned"
    lora = [f"train.init={base}", f"tokenizer.path={base}", "train.lora=2", "train.average=none", "train.seed=1"]
    lora.append(f"train.lora_on={matrices}")
    train(load_recipe("phrasebook", [*small, *lora]), tuned)
    weights = read_weights(tuned / "model.safetensors")
    adapter = read_weights(tuned / ADAPTER)
    trained = sum(t.numel() for t in adapter.values())
    assert f"{trained:,} parameters" in capsys.readouterr().err
    merged = merge_adapter(base, tuned / ADAPTER)
    assert merged.keys() == weights.keys()
    for name, tensor in weights.items():
        torch.testing.assert_close(merged[name], tensor)
    assert any(
        not torch.equal(weights[name], tensor) for name, tensor in read_weights(base / "model.safetensors").items()
    )
    with pytest.raises(UserError, match=rf"was trained on another run than .*; give that one: {base}"):
        merge_adapter(tuned, tuned / ADAPTER)
