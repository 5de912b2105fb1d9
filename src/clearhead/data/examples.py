"""What a corpus consists of: one small class for each kind of example. A conversation is a `text.dialogue.Dialogue`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from clearhead.text.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class Document:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; a paragraph and its headline."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and the name of its class."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences and the similarity of their meanings, from 0 to 1."""

    first: str
    second: str
    score: float = 1.0
    negative: str = ""  # a sentence that looks like the first and means something else; empty: none


Example = Document | Pair | LabelledText | Dialogue | SentencePair


def texts_of(example: Example) -> tuple[str, ...]:
    """All texts of an example."""
    match example:
        case Document(text) | LabelledText(text):
            return (text,)
        case Pair(source, target):
            return (source, target)
        case Dialogue(messages):
            return tuple(message.content for message in messages)
        case SentencePair(first, second, _, negative):
            return (first, second, negative) if negative else (first, second)


def is_empty(example: Example) -> bool:
    """Whether a text of the example is only white space; a document is empty only if it has no character at all."""
    if isinstance(example, Document):
        return not example.text
    texts = texts_of(example)
    return not (texts and all(text.strip() for text in texts))


class Corpus(Protocol):
    """Examples for one task, in named splits."""

    @property
    def name(self) -> str:
        """Its name in lists and messages."""

    @property
    def task(self) -> str:
        """The task it is made for: a key of TASKS."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of its splits: train first, then valid, test and others."""

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split, always in the same order."""
