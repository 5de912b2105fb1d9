"""How fast text becomes ids, beside bare `tokenizers.encode_batch`: both in one run, in turns, on the same chunks.

python bench/tokenizer.py [TEXT_FILE]     without a file: stories, 10 million characters of them
"""

from __future__ import annotations

import lzma
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tokenizers

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
    begin = time.perf_counter()
    tokenizer = train_tokenizer(TokenizerConfig(), texts)
    print(f"training bpe, {tokenizer.vocab:,} tokens, on {len(text) / 1e6:.1f}M characters: {since(begin):.2f} s")
    compare(tokenizer, text, texts)


def read(path: Path) -> str:
    """The beginning of a file."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf8") as file:
        return file.read(CHARACTERS)


def stories() -> Iterator[str]:
    """Text that needs no file."""
    left = CHARACTERS
    for story in built_in_corpus("stories").read("train"):
        assert isinstance(story, Document)
        yield story.text
        left -= len(story.text)
        if left < 0:
            return


def compare(tokenizer: Tokenizer, text: str, texts: list[str]) -> None:
    bare = tokenizers.Tokenizer.from_str(tokenizer._bare.to_str())
    chunks = list(chunked(texts, len))  # as `Tokenizer` does: all at once would take half a gigabyte
    ways: dict[str, Callable[[], object]] = {
        "bare encode_batch": lambda: [len(bare.encode_batch(chunk, add_special_tokens=False)) for chunk in chunks],
        "bare encode_batch, ids": lambda: [
            ids_of(bare.encode_batch(chunk, add_special_tokens=False)) for chunk in chunks
        ],
        "clearhead encode_batch": lambda: tokenizer.encode_batch(texts),
        "clearhead encode, one long text": lambda: tokenizer.encode(text),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            seconds[name].append(since(begin))
    for name, taken in seconds.items():
        # The ratio of each round, because the machine may be busier in one round than in another.
        ratio = statistics.median(b / t for b, t in zip(seconds["bare encode_batch"], taken, strict=True))
        speed = len(text) / 1e6 / statistics.median(taken)
        print(f"{name:34s}{speed:6.2f}M characters/s   {ratio:4.0%} of bare encode_batch")


def ids_of(encodings: list[tokenizers.Encoding]) -> list[list[int]]:
    """What a caller does next."""
    return [encoding.ids for encoding in encodings]


def since(begin: float) -> float:
    """Seconds."""
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
