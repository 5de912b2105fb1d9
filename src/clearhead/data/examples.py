"""What a corpus is made of: one small class for each task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from clearhead.config import Task

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Text:
    """A document, for language models."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; a paragraph and its headline."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and its class."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Message:
    """What one side of a conversation says."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: user and assistant in turn, perhaps after a system message."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Similar:
    """Two sentences and how close their meanings are, 0 to 1; perhaps one that looks close and is not."""

    first: str
    second: str
    score: float = 1.0
    negative: str = ""


Example = Text | Pair | Labelled | Dialogue | Similar


class Corpus(Protocol):
    """Named splits of examples for one task."""

    @property
    def name(self) -> str:
        """How lists and messages call it."""

    @property
    def task(self) -> Task:
        """What a model can learn from it."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it has: train first, then valid, test and others."""

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split, in an order that never changes."""
