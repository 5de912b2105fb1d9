"""Inputs of the benchmarks: random weights, sentences and batches, as costly as real ones, and a small trained run.

A word of a random sentence is a token, and no end token is ever the most likely: all texts have the length asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig
from clearhead.data.batches import Batch, TokenColumn, pad_pairs
from clearhead.data.datasets import BucketedExamples
from clearhead.data.loader import Batches
from clearhead.data.store import RaggedArray
from clearhead.model import DecoderOnly, EncoderDecoder, build_model
from clearhead.recipes import load_recipe, write_recipe
from clearhead.runs import Facts, write_weights
from clearhead.text.tokenizer import Tokenizer, Tokenizers, load_tokenizers, train_tokenizer

FIRST_WORD = 9  # ids below it are special tokens
PAIRS = 100_000  # random sentence pairs
VARIETY = 4  # different batches of a shape


@cache
def word_tokenizer(vocab: int) -> Tokenizer:
    """A tokenizer with the words w0, w1, w2, ..."""
    words = [" ".join(f"w{n}" for n in range(start, min(start + 1000, vocab))) for start in range(0, vocab, 1000)]
    return train_tokenizer(TokenizerConfig(kind="words", vocab=vocab), words, progress=False)


def write_random_run(folder: Path, config: ModelConfig) -> Path:
    """Write a run folder with random weights; special tokens and the last one have rows of 0: never chosen."""
    torch.manual_seed(0)
    model = build_model(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                embedded = name.endswith("embedding.weight")
                nn.init.normal_(parameter, std=0.1 if embedded else parameter.size(1) ** -0.5)
        assert isinstance(model, EncoderDecoder | DecoderOnly)
        embedding = model.decoder.embedding.weight
        embedding[:FIRST_WORD] = 0
        embedding[-1] = 0
    task = "translation" if config.family == "encoder-decoder" else "language"
    folder.mkdir(parents=True)
    write_recipe(Recipe("bench", data=DataConfig(task=task, max_length=1024), model=config), folder / "run.toml")
    tokenizer = word_tokenizer(config.vocab)
    Tokenizers(tokenizer, tokenizer).save(folder)
    Facts().write(folder / "facts.json")
    write_weights(dict(model.named_parameters()), folder / "model.safetensors")
    return folder


def random_texts(folder: Path, rows: int, words: int) -> list[str]:
    """Sentences of `words` words for a random run."""
    tokenizer = load_tokenizers(folder).source
    ids = torch.randint(FIRST_WORD, tokenizer.vocab - 1, (rows, words), generator=torch.Generator().manual_seed(1))
    return [tokenizer.decode(row) for row in ids.tolist()]


def train_small_run(folder: Path, *overrides: str) -> Path:
    """Train the demo's model for a hundred steps, after which translations have about the right length."""
    from clearhead.train.run import train

    settings = "train.steps=120 train.evaluate_every=0 train.snapshots=0 train.samples=0 data.size=10000"
    recipe = load_recipe("phrasebook", [*settings.split(), f"data.cache={folder.parent}", *overrides])
    if train(recipe, folder, quiet=True):  # it was stopped by a signal
        raise KeyboardInterrupt
    return folder


# --- batches for training ---------------------------------------------------------------------------------------------


def language_batches(vocab: int, rows: int, length: int, device: torch.device) -> Iterator[Batch]:
    """An endless iterator of random batches of running text."""
    made = []
    for _ in range(VARIETY):
        ids = torch.randint(vocab, (rows, length), device=device)
        made.append(Batch({"ids": ids}, ids.roll(-1, 1), ids.numel(), ids.numel()))
    return itertools.cycle(made)


def pair_batches(vocab: int, rows: int, length: int, device: torch.device) -> Iterator[Batch]:
    """An endless iterator of random batches of sentence pairs; every seventh source has three padding tokens."""
    made = []
    for _ in range(VARIETY):
        source, target = torch.randint(FIRST_WORD, vocab, (2, rows, length), device=device)
        real = torch.ones_like(source, dtype=torch.bool)
        real[::7, -3:] = False
        inputs = {"source": source, "source_real": real, "target": target}
        made.append(Batch(inputs, target.roll(-1, 1), target.numel(), int(real.sum())))
    return itertools.cycle(made)


def bucketed_pairs(vocab: int, budget: int, pairs: int = PAIRS) -> Batches:
    """Random sentence pairs of 4 to 60 tokens, as long as real ones are, in batches of similar lengths."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(4, 3.5, pairs).astype(int) + 4, 4, 60)
    tokenizer = word_tokenizer(vocab)
    columns = []
    for sizes in (lengths, np.clip(lengths + random.integers(-3, 5, pairs), 4, 63)):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        values = random.integers(FIRST_WORD, vocab, offsets[-1] + 1).astype(np.uint16)
        values[offsets] = tokenizer.start
        columns.append(TokenColumn(RaggedArray(values, offsets), tokenizer, 64))
    examples = BucketedExamples(pad_pairs(*columns), np.arange(pairs), budget, 1)
    return Batches(examples, budget, 0, 0, 1, shuffle=True)


def one_of_each_shape(batches: Batches) -> list[Batch]:
    """A batch of each shape that an epoch has."""
    found: dict[tuple[object, ...], Batch] = {}
    for batch in batches.epoch(0):
        found.setdefault(batch.shapes(), batch)
    return list(found.values())


def smaller(config: ModelConfig) -> ModelConfig:
    """A tiny model of this architecture."""
    return replace(config, vocab=300, d_model=32, d_ff=64, layers=1, heads=2, kv_heads=0)
