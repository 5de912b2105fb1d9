"""What a run needs before its first step: tokenizers, batches, and the settings that depend on the data."""

from __future__ import annotations

import itertools
import math
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
from clearhead.text.words import WORDS_FILE, read_words, write_words

SAMPLED_SOURCES = 1000  # that are checked for being single sentences
SEVERAL_SENTENCES = 0.05  # part of the sources that may have more than one


def prepare_tokenizers(recipe: Recipe) -> Tokenizers:
    """The tokenizers at `tokenizer.path`, or new ones trained on the corpus."""
    if recipe.tokenizer.path:
        tokenizers = load_tokenizers(Path(recipe.tokenizer.path))
    else:
        tokenizers = train_tokenizers(recipe.tokenizer, lambda side: train_texts(recipe.data, side))
    if special := TASKS[recipe.data.task].special_tokens:
        both = tokenizers.target.extended(*special)
        tokenizers = Tokenizers(both, both)
    return tokenizers


def train_texts(config: DataConfig, side: str) -> Iterator[str]:
    """The training texts of one side of pairs, or of both, read once.

    Examples without sides have all of their texts on the target side.
    """
    for example in open_corpus(config).read("train"):
        if isinstance(example, Pair) and side != "both":
            yield example.source if side == "source" else example.target
        elif side != "source":
            yield from texts_of(example)


def save_words(config: DataConfig, run: Path, init: str = "") -> None:
    """Write the words of the texts that a model reads, so that the run can warn about words that it has never seen.

    A model that begins with the weights of another run (`init`) has seen the words of that run, too; if those are not
    known, as those of an imported model, nothing is written.
    """
    seen = read_words(Path(init) / WORDS_FILE) if init else frozenset()
    if not (run / WORDS_FILE).exists() and (seen or not init):
        side = "source" if TASKS[config.task].example == "pair" else "target"
        write_words(itertools.chain(seen, train_texts(config, side)), run / WORDS_FILE)


def complete_recipe(recipe: Recipe, tokenizers: Tokenizers, labels: tuple[str, ...]) -> Recipe:
    """The recipe with the settings that depend on the data: the sizes of the vocabularies and the number of classes."""
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


def find_facts(recipe: Recipe, train: Batches) -> Facts:
    """The facts about the training data that a run needs when it is used."""
    facts = Facts(train.labels, train.longest_source, data=train.content)
    if TASKS[recipe.data.task].example != "pair":
        return facts
    sources = list(itertools.islice(train_texts(recipe.data, "source"), SAMPLED_SOURCES))
    several = sum(len(list(split(source.strip(), SENTENCE_END))) > 1 for source in sources)
    return replace(facts, one_sentence=several < SEVERAL_SENTENCES * len(sources))


def open_train_batches(recipe: Recipe, tokenizers: Tokenizers, rank: int, world: int) -> list[Batches]:
    """The training batches of this process: one `Batches` for each of its micro-batches of a step.

    The micro-batches of a step, `train.step_tokens` / `data.batch_tokens` of them, are divided among the processes. A
    step has the same batches for any number of processes that divides them evenly; for any other number, the tokens of
    a step are divided into more and smaller micro-batches.
    """
    data = recipe.data
    count = micro_batches(recipe.train, data)
    if count % world:
        tokens = count * data.batch_tokens
        count = math.ceil(count / world) * world
        buckets = open_batches(data, tokenizers, "train", recipe.train.seed).dataset.buckets(0)
        longest = max(sum(bucket.widths) for bucket in buckets)  # which a micro-batch must be able to hold
        data = replace(data, batch_tokens=max(tokens // count, longest))
    own = range(rank, count, world)
    found = [open_batches(data, tokenizers, "train", recipe.train.seed, number, count) for number in own]
    check_lengths(recipe, found[0])
    return found


def open_valid_batches(recipe: Recipe, tokenizers: Tokenizers) -> Batches | None:
    """The validation batches; None if the corpus has none, which settings that depend on them do not allow."""
    corpus = open_corpus(recipe.data)
    if "valid" in corpus.splits:
        batches = open_batches(recipe.data, tokenizers, "valid", recipe.train.seed)
        check_lengths(recipe, batches)
        too_low = "mask_rate" if "mask_rate" in TASKS[recipe.data.task].settings else "max_length"
        require(
            any(batch.tokens for batch in batches.epoch(0)),
            f"the split 'valid' of {corpus.name} has no target to evaluate the model on; add examples to it, or raise "
            f"data.{too_low} = {getattr(recipe.data, too_low)}",
        )
        return batches
    config = recipe.train
    needs = {"keep": config.keep == "best", "patience": config.patience > 0, "best_by": config.best_by != "loss"}
    for name, needed in needs.items():
        require(
            not needed,
            f"train.{name} = {getattr(config, name)!r} needs validation data, and {corpus.name} has no split 'valid'; "
            "data.hold_out=0.05 takes the last part of train for it",
        )
    return None


def check_lengths(recipe: Recipe, batches: Batches) -> None:
    """Refuse sequences with more tokens than there are learned positions: now, not in the middle of the training."""
    limit = recipe.model.position_limit
    longest = max(width for bucket in batches.dataset.buckets(0) for width in bucket.widths)
    require(
        limit is None or longest <= limit,
        f"model.max_length = {limit} learned positions are too few for sequences of {longest} tokens; raise it, or "
        f"lower data.max_length = {recipe.data.max_length}",
    )


def micro_batches(train: TrainConfig, data: DataConfig) -> int:
    """The number of micro-batches of a step."""
    return max(1, round(train.step_tokens / data.batch_tokens))


def batches_from_step(batches: Batches, step: int) -> Iterator[Batch]:
    """All batches from this step (counted from 0) on, epoch after epoch without end."""
    for epoch in itertools.count():
        steps = batches.steps(epoch)
        if step < steps:
            yield from batches.epoch(epoch, start=step)
        step = max(0, step - steps)
