"""An exam: a run, what it is asked, and the scores that come out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from clearhead.config import Recipe, Task, require
from clearhead.data.batches import Batch
from clearhead.data.loader import Batches
from clearhead.data.sources import open_corpus
from clearhead.decode.batching import Watch
from clearhead.recipes import build, override
from clearhead.runs import Run
from clearhead.terminal.progress import watch


@dataclass(frozen=True)
class Score:
    """One number, what to call it, and how it was computed."""

    key: str  # what programs call it
    name: str
    value: float
    about: str = ""  # a signature, or a definition


@dataclass(frozen=True)
class Case:
    """One example, what the model made of it, and how good that is: more is better."""

    score: float
    texts: dict[str, str]


@dataclass(frozen=True)
class Cases:
    """Single examples: all of them, or the best and the worst."""

    by: str  # what their score is
    each: list[Case] = field(repr=False)

    def extremes(self, count: int) -> tuple[list[Case], list[Case]]:
        """The worst and the best, so many of each at most; none of the worst is as good as the best."""
        ordered = sorted(self.each, key=lambda case: case.score)
        half = min(count, len(ordered) // 2)
        return [case for case in ordered[:half] if case.score < ordered[-1].score], ordered[::-1][:half]


@dataclass(frozen=True)
class Scores:
    """What a run has reached on a split."""

    run: str
    task: Task
    corpus: str
    split: str
    examples: int
    scores: list[Score]
    cases: Cases
    notes: list[str]  # what a reader must know to compare the numbers
    labels: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()  # row: what it is; column: what the model took it for

    @property
    def about(self) -> str:
        """What was measured, in a few words."""
        return f"{self.task}, {self.corpus}, {self.split}, {self.examples:,} examples"

    def __getitem__(self, key: str) -> float:
        return next(score.value for score in self.scores if score.key == key)


@dataclass(frozen=True)
class Exam:
    """A run, and what it is asked."""

    run: Run
    split: str
    limit: int = 0  # examples, from the first on; 0: all
    beam: int = 1
    quiet: bool = False

    def watch(self, title: str, texts: int) -> Watch:
        """A bar for what goes through so many texts."""
        return watch(title, texts, lambda rows: len(rows.members), self.quiet)

    def watch_batches(self, batches: Batches) -> Iterable[Batch]:
        """All batches of a split, with a bar."""
        return watch("reading", batches.steps(0), lambda _: 1, self.quiet)(batches.epoch(0))

    def long_note(self, texts: Iterable[str], limit: int, fate: str) -> list[str]:
        """How many texts have more tokens than a model reads at once, and what happened to them."""
        count = sum(len(ids) > limit for ids in self.run.tokenizers.source.encode_batch(list(texts)))
        return [f"{count:,} texts of more than {limit:,} tokens: {fate}"] if count else []

    def examples(self) -> list[Any]:
        """The examples as the corpus has them."""
        corpus = open_corpus(self.run.recipe.data)
        found = list(itertools.islice(corpus.read(self.split), self.limit or None))
        require(bool(found), f"{corpus.name} has no {self.split} examples; choose another with --split")
        return found

    def scores(self, examples: int, scores: list[Score], cases: Cases, notes: list[str]) -> Scores:
        """What has come out."""
        data = self.run.recipe.data
        if self.limit:
            notes = [f"only the first {examples:,} examples of the split", *notes]
        return Scores(
            self.run.folder.name, data.task, open_corpus(data).name, self.split, examples, scores, cases, notes
        )


def on_other_data(run: Run, overrides: Sequence[str]) -> Run:
    """A run that is to be measured on other data than its own: `data.path=...`, `data.test=...`."""
    for item in overrides:
        require(
            item.startswith("data.") and not item.startswith("data.task"),
            f"{item!r}: a trained run stays what it is; only its data can be others, such as data.path=FOLDER",
        )
    return replace(run, recipe=build(Recipe, override(Recipe, asdict(run.recipe), overrides)))
