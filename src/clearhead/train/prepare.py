"""From a recipe to all that a run needs: tokenizer, batches, model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from clearhead.config import DataConfig, Recipe, TrainConfig, require
from clearhead.data.batches import Batch
from clearhead.data.examples import Pair, texts_of
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus
from clearhead.runs import Facts
from clearhead.tasks import TASKS
from clearhead.text.sentences import SENTENCE_END, split
from clearhead.text.tokenizer import Tokenizers, load_tokenizers, train_tokenizers

LOOKED_AT = 1000  # sources, to see whether they are single sentences


def prepare_tokenizers(recipe: Recipe) -> Tokenizers:
    """The tokenizers that the recipe names, or new ones trained on its corpus."""
    if recipe.tokenizer.path:
        tokenizers = load_tokenizers(Path(recipe.tokenizer.path))
    else:
        sources, targets = (train_texts(recipe.data, side) for side in ("source", "target"))
        tokenizers = train_tokenizers(recipe.tokenizer, sources, targets)
    if special := TASKS[recipe.data.task].special_tokens:
        both = tokenizers.target.extended(*special)
        tokenizers = Tokenizers(both, both)
    return tokenizers


def train_texts(config: DataConfig, side: str) -> Iterator[str]:
    """The text of train: of one side of pairs; of examples without sides, all of it as the target."""
    for example in open_corpus(config).read("train"):
        if isinstance(example, Pair):
            yield example.source if side == "source" else example.target
        elif side == "target":
            yield from texts_of(example)


def complete(recipe: Recipe, tokenizers: Tokenizers, labels: tuple[str, ...]) -> Recipe:
    """The recipe with what only the data can tell: how many tokens and classes there are."""
    task = recipe.data.task
    model = recipe.model
    for setting in ("family", "head"):
        needed = getattr(TASKS[task], setting)
        value = getattr(model, setting)
        require(
            value == needed,
            f"data.task = {task!r} is for model.{setting} = {needed!r}, not {value!r}; change one of the two",
        )
    source_vocab = 0 if tokenizers.shared else tokenizers.source.vocab
    filled = replace(model, vocab=tokenizers.target.vocab, source_vocab=source_vocab, classes=len(labels))
    return replace(recipe, model=filled)


def facts_of(recipe: Recipe, train: Batches) -> Facts:
    """What only the data can tell and a run needs to know when it is used."""
    found = Facts(train.labels, train.longest_source)
    if TASKS[recipe.data.task].example != "pair":
        return found
    sources = list(itertools.islice(train_texts(recipe.data, "source"), LOOKED_AT))
    several = sum(len(list(split(source.strip(), SENTENCE_END))) > 1 for source in sources)
    return replace(found, one_sentence=several < 0.05 * len(sources))


def open_train(recipe: Recipe, tokenizers: Tokenizers, rank: int, world: int) -> list[Batches]:
    """The batches of train, one for each micro-batch of a step that this process works on.

    A step is cut into lanes, as many as there are micro-batches in `train.step_tokens`; processes share the lanes. So
    the same batches meet in the same step however many processes there are.
    """
    lanes = lanes_of(recipe.train, recipe.data)
    require(
        lanes % world == 0,
        f"a step has {lanes} micro-batches (train.step_tokens = {recipe.train.step_tokens} over data.batch_tokens = "
        f"{recipe.data.batch_tokens}), which {world} processes cannot share evenly; "
        f"try train.step_tokens={recipe.data.batch_tokens * world}",
    )
    mine = range(rank, lanes, world)
    return [open_batches(recipe.data, tokenizers, "train", recipe.train.seed, lane, lanes) for lane in mine]


def lanes_of(train: TrainConfig, data: DataConfig) -> int:
    """How many micro-batches a step has."""
    return max(1, round(train.step_tokens / data.batch_tokens))


def endless(batches: Batches, step: int) -> Iterator[Batch]:
    """Epoch after epoch, from the batch of this step (counted from 0) on: resuming is counting."""
    for epoch in itertools.count():
        steps = batches.steps(epoch)
        if step < steps:
            yield from batches.epoch(epoch, start=step)
        step = max(0, step - steps)
