"""Examples to columns of token ids, once for each corpus and tokenizer. One encoder for each kind of example.

What a decoder predicts is stored as [start] ids, one sequence after the other: the [start] of the next sequence stands
where the [end] of this one has to be predicted. So a slice of the column gives the inputs, and the slice one token
later the targets. What an encoder reads is stored with its [end], and with its [start] if it is pooled.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np

from clearhead.config import DataConfig, require
from clearhead.data.background import in_background
from clearhead.data.examples import Corpus, Pair, texts_of
from clearhead.data.names import shared_names, with_invented_names
from clearhead.data.readers.documents import DocumentPart
from clearhead.data.sources import document_parts, fingerprint_of, open_corpus, report_of
from clearhead.data.store import STORE_FORMAT, Chunk, Store, StoreCache, StoreWriter
from clearhead.tasks import TASKS, Task
from clearhead.terminal.progress import track
from clearhead.text.chat import render
from clearhead.text.cutting import chunked
from clearhead.text.tokenizer import Tokenizer, Tokenizers

ColumnChunks = dict[str, Chunk]

CHUNKS_AHEAD = 1  # chunks that are read while one is tokenized: the `tokenizers` library releases the GIL

# The settings that determine what is read and how: a change of any of them makes another store.
DETERMINING = "task hold_out source target text other label best_score context separator escapes"


def open_store_of(config: DataConfig, tokenizers: Tokenizers, split: str) -> Store:
    """Open the tokenized split from the cache; tokenize it first if it is not there."""
    corpus = open_corpus(config)
    name = store_name(corpus, config, tokenizers, split)
    cache = StoreCache(config.cache)
    if store := cache.lookup(name):
        return store
    damaged = (cache.folder / name).exists()
    with cache.building(name) as writer:
        if writer:
            copies = config.name_copies if split == "train" else 0
            write(writer, Encoding(corpus, split, TASKS[config.task], tokenizers, copies))
    store = cache.lookup(name)
    assert store
    if damaged:
        store.report.add("damaged cache rebuilt", str(cache.folder / name))
    return store


@dataclass(frozen=True)
class Encoding:
    """A split of a corpus, and the tokenizers that encode it."""

    corpus: Corpus
    split: str
    task: Task
    tokenizers: Tokenizers
    name_copies: int = 0  # data.name_copies
    labels: dict[str, int] = field(default_factory=dict)  # name of a class -> its number, filled in order of appearance

    def chunks(self) -> Iterator[list[Any]]:
        """The examples of the split in chunks, read ahead by a thread."""
        examples = self.corpus.read(self.split)
        if self.name_copies:
            examples = with_invented_names(cast(Iterator[Pair], examples), self.names(), self.name_copies)
        return in_background(chunked(examples, lambda example: sum(map(len, texts_of(example)))), CHUNKS_AHEAD)

    def names(self) -> set[str]:
        """The names in the pairs of the split."""
        return shared_names(cast(Iterator[Pair], self.corpus.read(self.split)))


def write(writer: StoreWriter, encoding: Encoding) -> None:
    """Tokenize a split into a store."""
    corpus = encoding.corpus
    split = encoding.split
    rows = 0
    encoded = in_background(ENCODERS[encoding.task.example](encoding), CHUNKS_AHEAD)
    for columns in track(encoded, f"tokenizing {corpus.name} {split}", unit="tokens", size=count_tokens):
        for name, chunk in columns.items():
            writer.add(name, chunk)
            rows += 0 if chunk.ends is None else len(chunk.ends)
    report = report_of(corpus, split)
    require(rows > 0, f"{corpus.name} has no {split} examples; {'; '.join(report.lines()) or 'its files contain none'}")
    writer.finish({"report": asdict(report), "labels": list(encoding.labels)})


def store_name(corpus: Corpus, config: DataConfig, tokenizers: Tokenizers, split: str) -> str:
    """The name of a store: it contains a hash of the corpus, the tokenizers and the determining settings."""
    settings = {name: getattr(config, name) for name in DETERMINING.split()}
    settings |= {"name_copies": config.name_copies} if config.name_copies and split == "train" else {}
    settings |= {"split": split, "content": fingerprint_of(corpus, config, split), "format": STORE_FORMAT}
    settings |= {"source ids": tokenizers.source.fingerprint, "target ids": tokenizers.target.fingerprint}
    key = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=10).hexdigest()
    readable = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in corpus.name)
    return f"{readable[-40:]}-{split}-{key}"


def dtype_of(tokenizer: Tokenizer) -> type[np.unsignedinteger[Any]]:
    """The smallest integer type that can store every id."""
    return np.uint16 if tokenizer.vocab <= 1 << 16 else np.uint32


def ragged(rows: Sequence[Sequence[int]], dtype: type[np.generic]) -> Chunk:
    """Rows of different lengths, concatenated."""
    ends = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
    total = int(ends[-1]) if len(ends) else 0
    return Chunk(np.fromiter(itertools.chain.from_iterable(rows), dtype, total), ends)


def final_start(tokenizer: Tokenizer) -> Chunk:
    """Append one [start] after the last row: it stands for the [end] that the last row must predict."""
    return Chunk(np.array([tokenizer.start], dtype_of(tokenizer)), np.empty(0, np.int64))


def framed(texts: Sequence[str], tokenizer: Tokenizer) -> Chunk:
    """[start] ids [end] of each text."""
    start, end = tokenizer.start, tokenizer.end
    return ragged([[start, *ids, end] for ids in tokenizer.encode_batch(texts)], dtype_of(tokenizer))


def encode_pairs(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Source: ids [end]. Target: [start] ids, and one [start] after the last."""
    source = encoding.tokenizers.source
    target = encoding.tokenizers.target
    for pairs in encoding.chunks():
        sources = source.encode_batch([pair.source for pair in pairs])
        targets = target.encode_batch([pair.target for pair in pairs])
        yield {
            "source": ragged([[*ids, source.end] for ids in sources], dtype_of(source)),
            "target": ragged([[target.start, *ids] for ids in targets], dtype_of(target)),
        }
    yield {"target": final_start(target)}


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
    """Ids: whole conversations. Learn: 1 for each token that is learned, because the assistant says it."""
    tokenizer = encoding.tokenizers.target
    for dialogues in encoding.chunks():
        rendered = [render(dialogue, tokenizer) for dialogue in dialogues]
        yield {
            "ids": ragged([each.ids for each in rendered], dtype_of(tokenizer)),
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
            "negative": ragged(rows, dtype_of(tokenizer)),
            "score": Chunk(np.array([pair.score for pair in pairs], np.float32), None),
        }


def encode_documents(encoding: Encoding) -> Iterator[ColumnChunks]:
    """Text: see `encode_parts`. Documents are encoded in parts, since one may not fit in memory."""
    parts = document_parts(encoding.corpus, encoding.split)
    return encode_parts(parts, encoding.tokenizers.target, closed=encoding.task.family == "encoder-only")


def encode_parts(parts: Iterator[DocumentPart], tokenizer: Tokenizer, closed: bool) -> Iterator[ColumnChunks]:
    """Text: [start] ids of each document, followed by [end] if `closed`; otherwise one [start] after the last."""
    opening = True  # whether the next part begins a document
    for chunk in in_background(chunked(parts, lambda part: len(part.text)), CHUNKS_AHEAD):
        begins = [opening, *(part.last for part in chunk[:-1])]
        texts = [text if begin else tokenizer.continued(text) for (text, _), begin in zip(chunk, begins, strict=True)]
        rows = tokenizer.encode_batch(texts)
        for part, begin, ids in zip(chunk, begins, rows, strict=True):
            if begin:
                ids.insert(0, tokenizer.start)
            if part.last and closed:
                ids.append(tokenizer.end)
        opening = chunk[-1].last
        values, ends = ragged(rows, dtype_of(tokenizer))
        yield {"text": Chunk(values, cast(Any, ends)[[part.last for part in chunk]])}
    if not closed:
        yield {"text": final_start(tokenizer)}


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
