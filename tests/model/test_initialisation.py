"""A fresh model knows nothing: every choice is equally likely, whatever the options."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from clearhead.config import ModelConfig
from clearhead.model import build_model
from clearhead.model.initialise import initialise
from clearhead.presets import PRESETS
from tiny_models import GRID, TINY, name

VOCAB = 1000


def first_loss(config: ModelConfig, length: int = 24) -> float:
    """The loss of a fresh model on text that has no pattern."""
    model = build_model(config).eval()
    ids = torch.randint(0, config.vocab, (8, length))
    inputs = (ids, ids) if config.family == "encoder-decoder" else (ids,)
    with torch.inference_mode():
        logits = model(*inputs).flatten(0, -2)
    return F.cross_entropy(logits, torch.randint(0, logits.size(-1), (len(logits),))).item()


@pytest.mark.parametrize("config", GRID, ids=name)
def test_the_first_loss_is_that_of_guessing(config: ModelConfig) -> None:
    wide = replace(config, vocab=VOCAB, d_model=64, d_ff=128)
    for family in ("encoder-decoder", "decoder-only", "encoder-only"):
        assert first_loss(replace(wide, family=family)) == pytest.approx(math.log(VOCAB), rel=0.05), family
    masked = replace(wide, family="encoder-only", head_dense=True)
    assert first_loss(masked) == pytest.approx(math.log(VOCAB), rel=0.05)
    classes = replace(masked, head="classes", classes=5)
    assert first_loss(classes) == pytest.approx(math.log(5), rel=0.05)


@pytest.mark.parametrize("preset", ["paper-base", "gpt2", "modern-100m", "bert-base"])
@pytest.mark.slow
def test_the_first_loss_of_real_models(preset: str) -> None:
    config = PRESETS[preset]
    if config.family == "encoder-only":
        config = replace(config, head="vocabulary")
    assert first_loss(config) == pytest.approx(math.log(config.vocab), rel=0.05)


def test_weights_start_as_the_table_says() -> None:
    model = build_model(replace(TINY, family="decoder-only", vocab=5000, d_model=64, norm_order="pre", layers=3))
    assert model.decoder.embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    block = model.decoder.blocks[1]
    limit = math.sqrt(6 / (64 + 64))
    assert block.attention.query.weight.abs().max().item() == pytest.approx(limit, rel=0.02)
    assert block.attention.out.weight.abs().max().item() == pytest.approx(limit / math.sqrt(6), rel=0.02)
    assert not block.attention.query.bias.any()
    assert (block.attention_add_norm.norm.weight == 1).all()
    assert (model.decoder.norm.weight == 64**-0.5).all()


def test_learned_positions_are_as_large_as_the_tokens_in_the_stream() -> None:
    model = build_model(replace(TINY, position="learned", d_model=64, vocab=5000, max_length=500))
    tokens = model.encoder.embedding(torch.arange(5000)[None]).std().item()
    positions = model.encoder.position(torch.arange(500), torch.float32).std().item()
    assert positions == pytest.approx(tokens, rel=0.05)


def test_ties_survive_a_model_that_is_filled_later() -> None:
    """As large models are made: without memory first, then on their device."""
    with torch.device("meta"):
        model = build_model(TINY)
    model.to_empty(device="cpu")
    initialise(model)
    assert model.encoder.embedding.weight is model.decoder.embedding.weight is model.head.project.weight
    assert len(list(model.parameters())) == len(list(build_model(TINY).parameters()))


def test_tied_tables_are_one_table() -> None:
    for tied, tables in (("all", 1), ("output", 2), ("none", 3)):
        model = build_model(replace(TINY, tied=tied))
        weights = (model.encoder.embedding.weight, model.decoder.embedding.weight, model.head.project.weight)
        assert len({id(weight) for weight in weights}) == tables


def test_separate_vocabularies_and_depths() -> None:
    model = build_model(replace(TINY, tied="output", source_vocab=70, encoder_layers=3, layers=1))
    assert (len(model.encoder.embedding.weight), len(model.decoder.embedding.weight)) == (70, 50)
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (3, 1)
    assert model(torch.full((1, 4), 69), torch.full((1, 4), 49)).shape == (1, 4, 50)
