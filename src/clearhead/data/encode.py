"""From examples to columns of ids, once for each corpus and tokenizer.

What a model writes is stored as [start] and the ids: in the row of all documents the [start] of the next one stands
where the [end] of this one is to be predicted, so one cut of the row gives inputs, and the same cut one further
targets. What an encoder reads gets its [end] (and, where a whole text is summed up, its [start]) right away.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from clearhead.config import DataConfig, require
from clearhead.data.background import in_background
from clearhead.data.examples import Corpus, texts_of
from clearhead.data.readers.documents import DocumentPart
from clearhead.data.report import Report
from clearhead.data.sources import document_parts, fingerprint_of, open_corpus, report_of
from clearhead.data.store import FORMAT, Chunk, Store, StoreCache, StoreWriter
from clearhead.tasks import TASKS, Task
from clearhead.terminal.progress import track
from clearhead.text.chat import render
from clearhead.text.cutting import chunked
from clearhead.text.tokenizer import Tokenizer, Tokenizers

ColumnChunks = dict[str, Chunk]

AHEAD = 1  # chunks that are read while one is tokenized: `tokenizers` lets other threads run

# The settings that decide what is read and how; a change of any makes another store.
DECIDING = (
    "task",
    "hold_out",
    "source",
    "target",
    "text",
    "other",
    "label",
    "best_score",
    "context",
    "separator",
    "escapes",
)


def open_store_of(config: DataConfig, tokenizers: Tokenizers, split: str) -> Store:
    """The tokenized split: from the cache, or tokenized now."""
    corpus = open_corpus(config)
    name = store_name(corpus, config, tokenizers, split)
    cache = StoreCache(config.cache)
    note = Report()
    if store := cache.lookup(name):
        return store
    if (cache.folder / name).exists():
        note.add("damaged cache rebuilt", str(cache.folder / name))
    with cache.building(name) as writer:
        if writer:
            write(writer, Encoding(corpus, split, TASKS[config.task], tokenizers))
    store = cache.lookup(name)
    assert store
    store.report.merge(note)
    return store


@dataclass(frozen=True)
class Encoding:
    """What is encoded: a split of a corpus, by these tokenizers; `labels` collects the names of classes."""

    corpus: Corpus
    split: str
    task: Task
    tokenizers: Tokenizers
    labels: dict[str, int] = field(default_factory=dict)  # the number of each, in the order of their appearance

    def chunks(self) -> Iterator[list[Any]]:
        """The examples of the split, some at a time, read ahead by a thread."""
        examples = self.corpus.read(self.split)
        return in_background(chunked(examples, lambda example: sum(map(len, texts_of(example)))), AHEAD)


def write(writer: StoreWriter, encoding: Encoding) -> None:
    """Tokenize a split into a store."""
    corpus, split = encoding.corpus, encoding.split
    rows = 0
    encoded = in_background(ENCODERS[encoding.task.example](encoding), AHEAD)
    for columns in track(encoded, f"tokenizing {corpus.name} {split}", unit="tokens", size=count_tokens):
        for name, chunk in columns.items():
            writer.add(name, chunk)
            rows += 0 if chunk.ends is None else len(chunk.ends)
    report = report_of(corpus, split)
    require(rows > 0, f"{corpus.name} has no {split} examples; {'; '.join(report.lines()) or 'its files hold none'}")
    writer.finish({"report": report.state(), "labels": list(encoding.labels)})


def store_name(corpus: Corpus, config: DataConfig, tokenizers: Tokenizers, split: str) -> str:
    """A name that changes with the corpus, the tokenizers, and the settings that matter."""
    settings = {name: getattr(config, name) for name in DECIDING}
    settings |= {"split": split, "content": fingerprint_of(corpus, config, split), "format": FORMAT}
    settings |= {"source ids": tokenizers.source.fingerprint, "target ids": tokenizers.target.fingerprint}
    key = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=10).hexdigest()
    readable = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in corpus.name)
    return f"{readable[-40:]}-{split}-{key}"


def kind_of(tokenizer: Tokenizer) -> type[np.unsignedinteger[Any]]:
    """The smallest numbers that hold every id."""
    return np.uint16 if tokenizer.vocab <= 1 << 16 else np.uint32


def ragged(rows: Sequence[Sequence[int]], kind: type[np.generic]) -> Chunk:
    """Lists of numbers, one after the other."""
    ends = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
    total = int(ends[-1]) if len(ends) else 0
    return Chunk(np.fromiter(itertools.chain.from_iterable(rows), kind, total), ends)


def closing(tokenizer: Tokenizer) -> Chunk:
    """The [start] after the last row, which stands for its [end]."""
    return Chunk(np.array([tokenizer.start], kind_of(tokenizer)), np.empty(0, np.int64))


def framed(texts: Sequence[str], tokenizer: Tokenizer) -> Chunk:
    """[start] ids [end] of each text."""
    start, end = tokenizer.start, tokenizer.end
    return ragged([[start, *ids, end] for ids in tokenizer.encode_batch(texts)], kind_of(tokenizer))


def encode_pairs(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Source: ids [end]. Target: [start] ids, and one [start] after the last."""
    source, target = encoding.tokenizers.source, encoding.tokenizers.target
    for pairs in encoding.chunks():
        sources = source.encode_batch([pair.source for pair in pairs])
        targets = target.encode_batch([pair.target for pair in pairs])
        yield {
            "source": ragged([[*ids, source.end] for ids in sources], kind_of(source)),
            "target": ragged([[target.start, *ids] for ids in targets], kind_of(target)),
        }
    yield {"target": closing(target)}


def encode_labelled_texts(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Text: [start] ids [end]. Label: the number of the class."""
    labels = encoding.labels
    for texts in encoding.chunks():
        numbers = [labels.setdefault(text.label, len(labels)) for text in texts]
        yield {
            "text": framed([text.text for text in texts], encoding.tokenizers.target),
            "label": Chunk(np.array(numbers, np.int32), None),
        }


def encode_dialogues(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Ids of whole dialogues, and 1 for each token that is learned because the assistant says it."""
    tokenizer = encoding.tokenizers.target
    for dialogues in encoding.chunks():
        rendered = [render(dialogue, tokenizer) for dialogue in dialogues]
        yield {
            "ids": ragged([each.ids for each in rendered], kind_of(tokenizer)),
            "learn": ragged([each.learn for each in rendered], np.uint8),
        }


def encode_sentence_pairs(encoding: Encoding) -> Iterator[ColumnChunks]:
    """First, second, negative (empty where there is none): [start] ids [end]. Score: a number from 0 to 1."""
    tokenizer = encoding.tokenizers.target
    start, end = tokenizer.start, tokenizer.end
    for pairs in encoding.chunks():
        negatives = tokenizer.encode_batch([pair.negative for pair in pairs])
        rows = [[start, *ids, end] if pair.negative else [] for pair, ids in zip(pairs, negatives, strict=True)]
        yield {
            "first": framed([pair.first for pair in pairs], tokenizer),
            "second": framed([pair.second for pair in pairs], tokenizer),
            "negative": ragged(rows, kind_of(tokenizer)),
            "score": Chunk(np.array([pair.score for pair in pairs], np.float32), None),
        }


def encode_documents(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Text: see `encode_parts`. Documents come in parts, since one may not fit in memory."""
    parts = document_parts(encoding.corpus, encoding.split)
    return encode_parts(parts, encoding.tokenizers.target, closed=encoding.task.family == "encoder-only")


def encode_parts(parts: Iterator[DocumentPart], tokenizer: Tokenizer, closed: bool) -> Iterator[ColumnChunks]:
    """Text: [start] ids of each document, followed by [end] if `closed`; otherwise one [start] after the last."""
    opening = True  # whether the next part begins a document
    for some in in_background(chunked(parts, lambda part: len(part.text)), AHEAD):
        begins = [opening, *(part.last for part in some[:-1])]
        texts = [text if begin else tokenizer.continued(text) for (text, _), begin in zip(some, begins, strict=True)]
        rows = tokenizer.encode_batch(texts)
        for part, begin, ids in zip(some, begins, rows, strict=True):
            if begin:
                ids.insert(0, tokenizer.start)
            if part.last and closed:
                ids.append(tokenizer.end)
        opening = some[-1].last
        values, ends = ragged(rows, kind_of(tokenizer))
        yield {"text": Chunk(values, cast(Any, ends)[[part.last for part in some]])}
    if not closed:
        yield {"text": closing(tokenizer)}


ENCODERS: dict[str, Callable[[Encoding], Iterator[ColumnChunks]]] = {  # by `Task.example`
    "pair": encode_pairs,
    "document": encode_documents,
    "labelled text": encode_labelled_texts,
    "dialogue": encode_dialogues,
    "sentence pair": encode_sentence_pairs,
}


def count_tokens(columns: ColumnChunks) -> int:
    """The tokens in a chunk of all columns; a column without ends has numbers, not tokens."""
    return sum(len(chunk.values) for chunk in columns.values() if chunk.ends is not None)
