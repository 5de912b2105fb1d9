"""What a model makes of the first validation examples, in words: the same ones each time, to see it improve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from clearhead.config import Recipe
from clearhead.data.batches import IGNORE, Batch, Documents, RandomKey
from clearhead.data.datasets import BucketedExamples
from clearhead.data.loader import Batches
from clearhead.data.plan import PlannedBatch
from clearhead.data.stream import PackedDialogues, PaddedDialogues, Stream
from clearhead.decode.search import Ending, greedy
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly
from clearhead.tasks import TASKS
from clearhead.terminal.colour import visible
from clearhead.text.tokenizer import Tokenizer, Tokenizers

Model = EncoderDecoder | DecoderOnly | EncoderOnly
Sample = dict[str, str]  # named texts: source, reference, output

PROMPT = 16  # tokens that a language model is given
LONGEST = 48  # tokens it goes on for
MORE = 16  # tokens an answer may be longer than the reference
SHOWN = 48  # tokens of a text with hidden words


@dataclass(frozen=True)
class Samples:
    """Some examples, always the same, and how to ask a model about them."""

    recipe: Recipe
    tokenizers: Tokenizers
    labels: tuple[str, ...]
    batch: Batch

    def answers(self, model: Model) -> list[Sample]:
        """What the model makes of them."""
        task = TASKS[self.recipe.data.task]
        if not self.recipe.train.samples or not task.samples:
            return []
        samples = SAMPLERS[task.samples](self, model)
        return [dict(zip(task.sample_texts, map(visible, texts), strict=True)) for texts in samples]

    def translations(self, model: Model) -> Iterator[tuple[str, ...]]:
        """Source, reference and what the model writes, greedily."""
        assert isinstance(model, EncoderDecoder)
        inputs, source, target = self.batch.inputs, self.tokenizers.source, self.tokenizers.target
        begun = model.start(inputs["source"], inputs["target"][:, :1], inputs["source_real"])
        longest = self.room(1, self.batch.targets.size(1) + MORE)
        outputs = greedy(model, begun, Ending((target.end,), target.pad, longest))
        for row, output in enumerate(outputs):
            yield (
                source.decode(inputs["source"][row][inputs["source_real"][row]].tolist()),
                target.decode(learned(self.batch.targets[row])),
                target.decode(output.ids),
            )

    def continuations(self, model: Model) -> Iterator[tuple[str, ...]]:
        """A beginning, how it goes on, and how the model goes on."""
        assert isinstance(model, DecoderOnly)
        chat = TASKS[self.recipe.data.task].example == "dialogue"
        tokenizer = self.tokenizers.target
        for ids, targets in zip(self.batch.inputs["ids"], self.batch.targets, strict=True):
            real = (targets != IGNORE).nonzero().flatten().tolist()
            begin = real[0] + 1 if chat else min(PROMPT, (len(real) + 1) // 2)  # chat: up to the assistant's turn
            reference = targets[begin - 1 : begin - 1 + LONGEST].tolist()
            if IGNORE in reference:
                reference = reference[: reference.index(IGNORE)]
            longest, output = self.room(begin, len(reference) + MORE), []
            if longest > 0:
                begun = model.start(ids[None, :begin])
                [written] = greedy(model, begun, Ending((tokenizer.end,), tokenizer.pad, longest))
                output = written.ids
            prompt = tokenizer.decode(ids[:begin].tolist(), keep_special=chat)
            yield prompt, tokenizer.decode(reference), tokenizer.decode(output)

    def guesses(self, model: Model) -> Iterator[tuple[str, ...]]:
        """A text with hidden words, those words, and what the model takes them for."""
        tokenizer, (ids, targets) = self.tokenizers.target, (self.batch.inputs["ids"], self.batch.targets)
        guesses = model(**self.batch.inputs).argmax(-1)
        for row in range(len(ids)):
            hidden = (targets[row, :SHOWN] != IGNORE).nonzero().flatten()
            text = tokenizer.decode(ids[row, :SHOWN].tolist(), keep_special=True)
            yield text, pieces(targets[row][hidden], tokenizer), pieces(guesses[row][hidden], tokenizer)

    def classes(self, model: Model) -> Iterator[tuple[str, ...]]:
        """A text, its label, and the one the model gives it."""
        inputs, tokenizer = self.batch.inputs, self.tokenizers.target
        chosen = model(**inputs).argmax(-1)
        for row, (label, guess) in enumerate(zip(self.batch.targets.tolist(), chosen.tolist(), strict=True)):
            text = tokenizer.decode(inputs["ids"][row][inputs["real"][row]].tolist())
            yield text, self.labels[label], self.labels[guess]

    def similarities(self, model: Model) -> Iterator[tuple[str, ...]]:
        """Two sentences, how close they are, and how close the model's vectors are."""
        inputs, tokenizer, count = self.batch.inputs, self.tokenizers.target, len(self.batch.targets)
        vectors = model(**inputs).float()
        cosines = torch.cosine_similarity(vectors[:count], vectors[count : 2 * count])
        texts = [tokenizer.decode(ids[real].tolist()) for ids, real in zip(inputs["ids"], inputs["real"], strict=True)]
        for row in range(count):
            yield texts[row], texts[count + row], f"{self.batch.targets[row]:.2f}", f"{cosines[row]:.2f}"

    def room(self, begun: int, wanted: int) -> int:
        """How many tokens can be written after so many: learned positions come to an end."""
        limit = self.recipe.model.position_limit
        return wanted if limit is None else min(wanted, limit - begun)


SAMPLERS: dict[str, Callable[[Samples, Model], Iterator[tuple[str, ...]]]] = {  # by `Task.samples`
    "translations": Samples.translations,
    "continuations": Samples.continuations,
    "masked tokens": Samples.guesses,
    "labels": Samples.classes,
    "similarities": Samples.similarities,
}


def learned(targets: Tensor) -> list[int]:
    """The targets without those that are no targets."""
    return targets[targets != IGNORE].tolist()


def pieces(ids: Tensor, tokenizer: Tokenizer) -> str:
    """Single tokens, told apart."""
    return " · ".join(visible(tokenizer.piece(number)).strip() for number in ids.tolist())


def open_samples(recipe: Recipe, tokenizers: Tokenizers, valid: Batches, device: torch.device) -> Samples:
    """The first `train.samples` examples of a split, and one at least: for pictures of attention."""
    batch = first_examples(valid, max(1, recipe.train.samples))
    return Samples(recipe, tokenizers, valid.labels, batch.to(device))


def first_examples(batches: Batches, count: int) -> Batch:
    """The first examples in the order of the corpus: dialogues and documents from their beginning, else blocks."""
    source, key = batches.dataset, RandomKey(0, 0, 0)
    if isinstance(source, Stream):
        if source.masking is None and len(source.column.lengths) >= count:
            documents = Documents(source.column)
            return documents.batch(PlannedBatch(np.arange(count), (int(documents.lengths[:count].max()),)), key)
        [blocks] = source.buckets(0)
        return source.batch(PlannedBatch(blocks.members[:count], blocks.widths), key)
    if isinstance(source, PackedDialogues):
        dialogues = PaddedDialogues(source.dialogues)
        source = BucketedExamples(dialogues, np.arange(len(dialogues.lengths)), batches.budget, 1)
    assert isinstance(source, BucketedExamples)
    members = np.sort(np.concatenate([bucket.members for bucket in source.buckets(0)]))[:count]
    widths = tuple(int(width) for width in source.examples.lengths[members].max(axis=0))
    return source.examples.batch(PlannedBatch(members, widths), key)
