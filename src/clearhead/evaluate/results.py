"""What an evaluation returns: scores, single examples with their own scores, and notes on how they were computed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """One number, its name and how it was computed."""

    key: str  # the name in JSON and in `results[key]`
    name: str
    value: float
    about: str = ""  # a sacrebleu signature, or a definition


@dataclass(frozen=True)
class Case:
    """One example, the model's output for it and its score (higher is better)."""

    score: float
    texts: dict[str, str]


@dataclass(frozen=True)
class Cases:
    """Scored examples: all of them, or only the best and the worst."""

    by: str  # the name of their score
    each: list[Case] = field(repr=False)

    def extremes(self, count: int) -> tuple[list[Case], list[Case]]:
        """Return the worst and the best cases, up to `count` of each; a tie with the best never counts as worst."""
        ordered = sorted(self.each, key=lambda case: case.score)
        half = min(count, len(ordered) // 2)
        return [case for case in ordered[:half] if case.score < ordered[-1].score], ordered[::-1][:half]


@dataclass(frozen=True)
class Results:
    """The scores of a run on one split of a corpus."""

    run: str
    task: str
    corpus: str
    split: str
    examples: int
    scores: list[Score]
    cases: Cases
    notes: list[str]  # what must be known to compare the numbers with others
    labels: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()  # row: the true class; column: the predicted class

    @property
    def about(self) -> str:
        """A one-line description of what was measured."""
        return f"{self.task}, {self.corpus}, {self.split}, {self.examples:,} examples"

    def __getitem__(self, key: str) -> float:
        """The value of the score with this key: `results["bleu"]`."""
        return next(score.value for score in self.scores if score.key == key)
