"""The words of a corpus, so that a run can tell which words it has never seen: words.txt, one word per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from clearhead.files import write_file

WORDS_FILE = "words.txt"
WORD = re.compile(r"\w+(?:['’]\w+)*")
MOST_WORDS = 50_000  # a corpus with more different words gets no list of them: it has nearly all words
MOST_CHARACTERS = 50_000_000  # a larger corpus gets no list either, because reading it takes long


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case; what contains a digit is not a word."""
    for word in WORD.findall(text.lower()):
        if word.isalpha() or not any(character.isdigit() for character in word):
            yield word


def write_words(texts: Iterable[str], path: Path) -> None:
    """Write all different words of texts, sorted, unless there are too many."""
    known: set[str] = set()
    characters = 0
    for text in texts:
        known.update(words_of(text))
        characters += len(text)
        if len(known) > MOST_WORDS or characters > MOST_CHARACTERS:
            return
    write_file(path, "".join(f"{word}\n" for word in sorted(known)))


def read_words(path: Path) -> frozenset[str]:
    """Read a list of words; without the file, there are none."""
    return frozenset(path.read_text(encoding="utf8", errors="replace").split()) if path.is_file() else frozenset()
