"""Throughput of the data loader without a model, in tokens a second, and its share of a training step.

    python bench/loader.py

The data are random ids, as many as a real corpus has, in a temporary folder.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import seconds
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

from clearhead.bench.contest import median_ratio
from clearhead.config import DataConfig, ModelConfig, TokenizerConfig
from clearhead.data.batches import Batch, Masking, TokenColumn, pad_pairs
from clearhead.data.datasets import BucketedExamples
from clearhead.data.encode import open_store_of
from clearhead.data.examples import texts_of
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus
from clearhead.data.store import Chunk, Store, StoreCache
from clearhead.data.stream import Stream
from clearhead.model.families import build_model
from clearhead.text.tokenizer import Tokenizer, Tokenizers, train_tokenizer

TOKENS = 20_000_000  # of running text
PAIRS = 100_000  # of sentences
ROUNDS = 3


def random_store(folder: Path, vocab: int) -> Store:
    """A memory-mapped store of running text in documents of 1,000 tokens, and of sentence pairs of 4 to 60 tokens."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(4, 3.5, PAIRS).astype(int) + 4, 4, 60)
    both = {"source": lengths, "target": np.clip(lengths + random.integers(-3, 5, PAIRS), 4, 63)}
    with StoreCache(str(folder)).building("made") as writer:
        assert writer
        ids = random.integers(10, vocab, TOKENS + 1).astype(np.uint16)
        ids[::1000] = 1
        writer.add("text", Chunk(ids, np.arange(1000, TOKENS + 1, 1000)))
        for name, sizes in both.items():
            ids = random.integers(10, vocab, sizes.sum() + 1).astype(np.uint16)
            writer.add(name, Chunk(ids, np.cumsum(sizes)))
        writer.finish({"report": {}})
    store = StoreCache(str(folder)).lookup("made")
    assert store
    return store


def tokens_in(batch: Batch) -> int:
    """The number of tokens that the model reads."""
    return sum(batch.inputs[name].numel() for name in ("ids", "source", "target") if name in batch.inputs)


def throughput(batches: Batches) -> float:
    """Tokens a second over one epoch, including the time to plan it."""
    begin = time.perf_counter()
    tokens = sum(tokens_in(batch) for batch in batches.epoch(0))
    return tokens / (time.perf_counter() - begin)


def sources(store: Store, tokenizer: Tokenizer) -> dict[str, Any]:
    """What is measured, by name."""
    text = TokenColumn(store.ragged["text"], tokenizer, 1024)
    pairs = pad_pairs(
        TokenColumn(store.ragged["source"], tokenizer, 64), TokenColumn(store.ragged["target"], tokenizer, 64)
    )
    return {
        "running text, 8 x 1,024": (Stream(text, 0), 8 * 1024),
        "running text, 64 x 1,024": (Stream(text, 0), 64 * 1024),
        "with document mask, 64 x 1,024": (Stream(text, 0, document_mask=True), 64 * 1024),
        "masked, 64 x 1,024": (Stream(text, 0, masking=Masking(tokenizer, 0.15)), 64 * 1024),
        "pairs by length, 4,096": (BucketedExamples(pairs, np.arange(PAIRS), 4096, 1), 4096),
        "pairs by length, 25,000": (BucketedExamples(pairs, np.arange(PAIRS), 25_000, 1), 25_000),
    }


def tokenizing_speed(folder: Path, tokenizer: Tokenizer, corpus: str) -> float:
    """The speed of reading, tokenizing and storing a corpus, as a fraction of bare `encode_batch` on its texts."""
    task: Any = {"phrasebook": "translation", "stories": "language"}[corpus]
    config = DataConfig(task=task, corpus=corpus, size=10_000 if corpus == "phrasebook" else 2000)
    rows = [texts_of(example) for example in open_corpus(config).read("train")] * 4
    path = folder / f"{corpus}.jsonl"
    path.write_text("".join(json.dumps({"1": row[0], "2": row[-1]}) + "\n" for row in rows), encoding="utf8")
    texts = [text for row in rows for text in row]
    bare = []
    ours = []
    for repeat in range(ROUNDS):
        cache = str(folder / f"{corpus}{repeat}")
        made = DataConfig(task=task, path=str(path), source="1", target="2", text="1", cache=cache)
        bare.append(
            seconds(lambda: [row.ids for row in tokenizer.backend.encode_batch_fast(texts, add_special_tokens=False)])
        )
        ours.append(seconds(partial(open_store_of, made, Tokenizers(tokenizer, tokenizer), "train")))
    return median_ratio(bare, ours)


def share_of_a_step(folder: Path, tokenizer: Tokenizer) -> float:
    """The fraction of time spent on loading while training a small translation model."""
    config = DataConfig(corpus="phrasebook", size=5000, cache=str(folder), batch_tokens=2048)
    model = build_model(ModelConfig(vocab=tokenizer.vocab, d_model=128, d_ff=512, layers=2))
    optimiser = torch.optim.AdamW(model.parameters())
    loading = learning = 0.0
    batches: Iterator[Batch] = itertools.islice(open_batches(config, tokenizer).epoch(0), 20)
    while True:
        begin = time.perf_counter()
        batch = next(batches, None)
        middle = time.perf_counter()
        if batch is None:
            return loading / (loading + learning)
        cross_entropy(model(**batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        loading += middle - begin
        learning += time.perf_counter() - middle


def main() -> None:
    torch.set_num_threads(2)
    table = Table("what", "measured", "target", title="throughput of the data loader, without a model")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples = open_corpus(DataConfig(corpus="phrasebook", size=5000)).read("train")
        texts = [text for example in examples for text in texts_of(example)]
        tokenizer = train_tokenizer(TokenizerConfig(vocab=8000), texts, progress=False)
        store = random_store(folder, tokenizer.vocab)
        for what, (source, budget) in sources(store, tokenizer).items():
            best = max(throughput(Batches(source, budget, 0, 0, 1, True)) for _ in range(ROUNDS))
            target = "2M" if "pairs" in what else "20M" if what.startswith("running") else ""
            table.add_row(what, f"{best / 1e6:.0f}M tokens/s", target)
        for what, corpus in (("short sentences", "phrasebook"), ("documents", "stories")):
            ratio = tokenizing_speed(folder, tokenizer, corpus)
            table.add_row(f"{what}: read, tokenize, write", f"{ratio:.0%} of bare encode_batch", "")
        table.add_row("share of a training step (CPU)", f"{share_of_a_step(folder, tokenizer):.2%}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
