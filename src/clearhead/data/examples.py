"""What a corpus is made of: one small class for each task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from clearhead.text.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class Document:
    """A document, for language models."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; a paragraph and its headline."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and its class."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences and how close their meanings are, 0 to 1; perhaps one that looks close and is not."""

    first: str
    second: str
    score: float = 1.0
    negative: str = ""


Example = Document | Pair | LabelledText | Dialogue | SentencePair


def texts_of(example: Example) -> tuple[str, ...]:
    """All text of an example."""
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
    """Whether a text of the example has nothing but white space; of a document, whether it has no character at all."""
    if isinstance(example, Document):
        return not example.text
    texts = texts_of(example)
    return not (texts and all(text.strip() for text in texts))


class Corpus(Protocol):
    """Named splits of examples for one task."""

    @property
    def name(self) -> str:
        """How lists and messages call it."""

    @property
    def task(self) -> str:
        """What a model can learn from it."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it has: train first, then valid, test and others."""

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split, in an order that never changes."""
