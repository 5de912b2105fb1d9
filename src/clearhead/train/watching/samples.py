"""Sample outputs of a model: for the first validation examples, the same ones at each evaluation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from clearhead.config import Recipe
from clearhead.data.batches import IGNORE, Batch, RandomKey, pad_documents
from clearhead.data.datasets import BucketedExamples
from clearhead.data.loader import Batches
from clearhead.data.plan import PlannedBatch
from clearhead.data.stream import PackedDialogues, Stream, pad_dialogues
from clearhead.decode.limits import tokens_left
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import decoder_for
from clearhead.model import DecoderOnly, EncoderDecoder, Model
from clearhead.tasks import TASKS
from clearhead.terminal.colour import visible
from clearhead.text.tokenizer import Tokenizer, Tokenizers

Sample = dict[str, str]  # texts by name: source, reference, output

PROMPT_TOKENS = 16  # of a document that a language model continues
LONGEST_CONTINUATION = 48  # tokens
EXTRA_SAMPLE_TOKENS = 16  # that an output may be longer than the reference
SHOWN_TOKENS = 48  # of a text with masked words


@dataclass(frozen=True)
class Samples:
    """A batch of validation examples, and the outputs of a model for them."""

    recipe: Recipe
    tokenizers: Tokenizers
    labels: tuple[str, ...]
    batch: Batch

    def outputs(self, model: Model) -> list[Sample]:
        """The output of the model for each example, with the example and its reference."""
        task = TASKS[self.recipe.data.task]
        if not self.recipe.train.samples or not task.samples:
            return []
        samples = SAMPLERS[task.samples](self, model)
        return [dict(zip(task.sample_texts, map(visible, texts), strict=True)) for texts in samples]

    def texts(self, name: str = "ids", real: str = "real") -> list[str]:
        """The texts of all rows of an input, without padding."""
        tokenizer = self.tokenizers.source if name == "source" else self.tokenizers.target
        rows = zip(self.batch.inputs[name], self.batch.inputs[real], strict=True)
        return [tokenizer.decode(ids[kept].tolist()) for ids, kept in rows]

    def translations(self, model: Model) -> Iterator[tuple[str, ...]]:
        """Source, reference and the greedy translation."""
        assert isinstance(model, EncoderDecoder)
        inputs = self.batch.inputs
        tokenizer = self.tokenizers.target
        decoder = decoder_for(model, fused=False)
        prefill = decoder.start(inputs["source"], inputs["target"][:, :1], inputs["source_real"])
        limit = min(self.batch.targets.size(1) + EXTRA_SAMPLE_TOKENS, tokens_left(self.recipe.model, read=1))
        outputs = greedy(decoder, prefill, StopCriteria((tokenizer.end,), tokenizer.pad, limit))
        sources = self.texts("source", "source_real")
        for source, targets, output in zip(sources, self.batch.targets, outputs, strict=True):
            yield source, tokenizer.decode(targets[targets != IGNORE].tolist()), tokenizer.decode(output.ids)

    def continuations(self, model: Model) -> Iterator[tuple[str, ...]]:
        """The beginning of a text or dialogue, its real continuation, and the greedy one."""
        assert isinstance(model, DecoderOnly)
        chat = TASKS[self.recipe.data.task].example == "dialogue"
        tokenizer = self.tokenizers.target
        decoder = decoder_for(model, fused=False)
        for ids, targets in zip(self.batch.inputs["ids"], self.batch.targets, strict=True):
            real = (targets != IGNORE).nonzero().flatten().tolist()
            if not real:  # the answer was cut off by data.max_length
                continue
            begin = real[0] + 1 if chat else min(PROMPT_TOKENS, (len(real) + 1) // 2)  # chat: the assistant's turn
            continuation = targets[begin - 1 : begin - 1 + LONGEST_CONTINUATION].tolist()
            reference = list(itertools.takewhile(lambda target: target != IGNORE, continuation))
            limit = min(len(reference) + EXTRA_SAMPLE_TOKENS, tokens_left(self.recipe.model, begin))
            output: list[int] = []
            if limit > 0:
                stop = StopCriteria((tokenizer.end,), tokenizer.pad, limit)
                output = greedy(decoder, decoder.start(ids[None, :begin]), stop)[0].ids
            prompt = tokenizer.decode(ids[:begin].tolist(), keep_special=chat)
            yield prompt, tokenizer.decode(reference), tokenizer.decode(output)

    def guesses(self, model: Model) -> Iterator[tuple[str, ...]]:
        """A text with masked tokens, those tokens, and the model's guesses."""
        tokenizer = self.tokenizers.target
        guesses = model(**self.batch.inputs).argmax(-1)
        beginnings = (rows[:, :SHOWN_TOKENS] for rows in (self.batch.inputs["ids"], self.batch.targets, guesses))
        for ids, targets, guessed in zip(*beginnings, strict=True):
            hidden = targets != IGNORE
            text = tokenizer.decode(ids.tolist(), keep_special=True)
            yield text, pieces(targets[hidden], tokenizer), pieces(guessed[hidden], tokenizer)

    def classes(self, model: Model) -> Iterator[tuple[str, ...]]:
        """A text, its label, and the predicted one."""
        chosen = model(**self.batch.inputs).argmax(-1)
        for text, label, guess in zip(self.texts(), self.batch.targets.tolist(), chosen.tolist(), strict=True):
            yield text, self.labels[label], self.labels[guess]

    def similarities(self, model: Model) -> Iterator[tuple[str, ...]]:
        """Two sentences, their similarity score, and the cosine of their vectors."""
        scores = self.batch.targets
        count = len(scores)
        vectors = model(**self.batch.inputs).float()
        cosines = torch.cosine_similarity(vectors[:count], vectors[count : 2 * count])
        texts = self.texts()
        for first, second, score, cosine in zip(texts[:count], texts[count : 2 * count], scores, cosines, strict=True):
            yield first, second, f"{score:.2f}", f"{cosine:.2f}"


SAMPLERS: dict[str, Callable[[Samples, Model], Iterator[tuple[str, ...]]]] = {  # by `Task.samples`
    "translations": Samples.translations,
    "continuations": Samples.continuations,
    "masked tokens": Samples.guesses,
    "labels": Samples.classes,
    "similarities": Samples.similarities,
}


def pieces(ids: Tensor, tokenizer: Tokenizer) -> str:
    """Tokens with a dot between each two."""
    return " · ".join(visible(tokenizer.piece(number)).strip() for number in ids.tolist())


def open_samples(recipe: Recipe, tokenizers: Tokenizers, valid: Batches, device: torch.device) -> Samples:
    """The first `train.samples` examples of a split, but at least one, for images of attention weights."""
    batch = first_examples(valid, max(1, recipe.train.samples))
    return Samples(recipe, tokenizers, valid.labels, batch.to(device))


def first_examples(batches: Batches, count: int) -> Batch:
    """The first examples in the order of the corpus: whole dialogues and documents where possible, else blocks."""
    dataset = batches.dataset
    key = RandomKey(0, 0, 0)
    if isinstance(dataset, Stream):
        if dataset.masking is None and len(dataset.column.lengths) >= count:
            documents = pad_documents(dataset.column)
            return documents.batch(PlannedBatch(np.arange(count), (int(documents.lengths[:count].max()),)), key)
        [blocks] = dataset.buckets(0)
        return dataset.batch(PlannedBatch(blocks.members[:count], blocks.widths), key)
    if isinstance(dataset, PackedDialogues):
        dialogues = pad_dialogues(dataset.dialogues)
        dataset = BucketedExamples(dialogues, np.arange(len(dialogues.lengths)), batches.budget, 1)
    assert isinstance(dataset, BucketedExamples)
    members = np.sort(np.concatenate([bucket.members for bucket in dataset.buckets(0)]))[:count]
    widths = tuple(int(width) for width in dataset.examples.lengths[members].max(axis=0))
    return dataset.examples.batch(PlannedBatch(members, widths), key)
