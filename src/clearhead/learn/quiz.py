"""The quiz: three questions for each chapter of the course, in quiz.toml."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.config import UserError, suggest

FILE = Path(__file__).parent / "quiz.toml"


@dataclass(frozen=True)
class Question:
    """A question with one right answer."""

    chapter: str
    number: int  # within its chapter, from 1
    ask: str
    right: str
    wrong: tuple[str, ...]
    explain: str

    @property
    def key(self) -> str:
        """The name under which an answer is remembered."""
        return f"{self.chapter}/{self.number}"

    def choices(self) -> list[str]:
        """All answers, in an order that looks random and is the same each time."""
        answers = [self.right, *self.wrong]
        random.Random(self.key).shuffle(answers)
        return answers


@dataclass(frozen=True)
class Chapter:
    """A chapter of the course."""

    name: str
    title: str
    questions: tuple[Question, ...]


def read_quiz() -> list[Chapter]:
    """All chapters with their questions, in the order of the course."""
    chapters = []
    for name, entry in tomllib.loads(FILE.read_text(encoding="utf8")).items():
        questions = [
            Question(name, number, each["ask"], each["right"], tuple(each["wrong"]), each["explain"])
            for number, each in enumerate(entry["question"], 1)
        ]
        chapters.append(Chapter(name, entry["title"], tuple(questions)))
    return chapters


def find_chapter(name: str) -> Chapter:
    """The chapter of a name."""
    chapters = {chapter.name: chapter for chapter in read_quiz()}
    if name not in chapters:
        raise UserError(f"the course has no chapter {name!r}; {suggest(name, chapters)}")
    return chapters[name]


def next_chapter(answers: dict[str, bool]) -> Chapter | None:
    """The first chapter with a question that has no right answer yet."""
    chapters = read_quiz()
    return next((each for each in chapters if count_right(each.questions, answers) < len(each.questions)), None)


def count_right(questions: Sequence[Question], answers: dict[str, bool]) -> int:
    """How many questions were answered right, at the last time."""
    return sum(answers.get(question.key, False) for question in questions)
