"""Tokenization speed, compared with `encode_batch` of the `tokenizers` library on the same chunks of text.

python bench/tokenizer.py [TEXT_FILE]     without a file: 10 million characters of the built-in stories
"""

from __future__ import annotations

import lzma
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tokenizers
from measure import in_turns

from clearhead.bench.contest import median_ratio
from clearhead.config import TokenizerConfig
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.data.examples import Document
from clearhead.text.cutting import chunked
from clearhead.text.tokenizer import Tokenizer, train_tokenizer

ROUNDS = 5
CHARACTERS = 10_000_000


def main(path: Path | None) -> None:
    text = read(path) if path else "\n\n".join(stories())
    texts = text.split("\n\n")
    began = time.perf_counter()
    tokenizer = train_tokenizer(TokenizerConfig(), texts)
    taken = time.perf_counter() - began
    print(f"training bpe, {tokenizer.vocab:,} tokens, on {len(text) / 1e6:.1f}M characters: {taken:.2f} s")
    compare(tokenizer, text, texts)


def read(path: Path) -> str:
    """The first characters of a file."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf8") as file:
        return file.read(CHARACTERS)


def stories() -> Iterator[str]:
    """The built-in stories, up to CHARACTERS."""
    left = CHARACTERS
    for story in built_in_corpus("stories").read("train"):
        assert isinstance(story, Document)
        yield story.text
        left -= len(story.text)
        if left < 0:
            return


def compare(tokenizer: Tokenizer, text: str, texts: list[str]) -> None:
    bare = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    chunks = list(chunked(texts, len))  # as `Tokenizer` does: all at once would take half a gigabyte of memory
    calls: dict[str, Callable[[], object]] = {
        "bare encode_batch": lambda: [len(bare.encode_batch(chunk, add_special_tokens=False)) for chunk in chunks],
        "bare encode_batch, ids": lambda: [
            ids_of(bare.encode_batch(chunk, add_special_tokens=False)) for chunk in chunks
        ],
        "clearhead encode_batch": lambda: tokenizer.encode_batch(texts),
        "clearhead encode, one long text": lambda: tokenizer.encode(text),
    }
    times = in_turns(calls, ROUNDS, warm_up=0)
    for name, taken in times.items():
        ratio = median_ratio(times["bare encode_batch"], taken)
        speed = len(text) / 1e6 / statistics.median(taken)
        print(f"{name:34s}{speed:6.2f}M characters/s   {ratio:4.0%} of bare encode_batch")


def ids_of(encodings: list[tokenizers.Encoding]) -> list[list[int]]:
    """The ids, which every caller needs next."""
    return [encoding.ids for encoding in encodings]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
