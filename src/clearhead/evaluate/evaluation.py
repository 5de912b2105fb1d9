"""One evaluation: the run under test, the split it is tested on, and the options."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from clearhead.config import DataConfig, Recipe, UserError, require
from clearhead.data.batches import Batch
from clearhead.data.loader import Batches
from clearhead.data.readers.fields import column_settings, columns_of
from clearhead.data.readers.files import format_of
from clearhead.data.readers.folder import FolderCorpus
from clearhead.data.sources import open_corpus
from clearhead.decode.batching import PaddedBatch, Progress
from clearhead.evaluate.results import Cases, Results, Score
from clearhead.recipes import build, override
from clearhead.runs import Run
from clearhead.terminal.progress import track


@dataclass(frozen=True)
class Evaluation:
    """A run, the split it is measured on, and the options; a scorer turns it into `Results`."""

    run: Run
    split: str
    limit: int = 0  # number of examples, from the first one; 0: all
    beam: int = 1
    quiet: bool = False  # no progress bar

    def progress(self, title: str) -> Progress:
        """A wrapper for batches that draws a progress bar over their texts."""

        def progress(batches: Iterable[PaddedBatch], total: int) -> Iterable[PaddedBatch]:
            return track(batches, title, total, "texts", size=lambda batch: len(batch.members), quiet=self.quiet)

        return progress

    def read_batches(self, batches: Batches) -> Iterable[Batch]:
        """All batches of the first epoch, with a progress bar."""
        return track(batches.epoch(0), "reading", batches.steps(0), "batches", quiet=self.quiet)

    def note_long_texts(self, texts: Iterable[str], limit: int, handling: str) -> list[str]:
        """A note that says how many texts exceed `limit` tokens and how they were handled; none if no text does."""
        count = sum(len(ids) > limit for ids in self.run.tokenizers.source.encode_batch(list(texts)))
        return [f"{count:,} texts of more than {limit:,} tokens: {handling}"] if count else []

    def examples(self) -> list[Any]:
        """The examples of the split as the corpus has them, at most `limit`."""
        corpus = open_corpus(self.run.recipe.data)
        found = list(itertools.islice(corpus.read(self.split), self.limit or None))
        require(bool(found), f"{corpus.name} has no {self.split} examples; choose another split with --split")
        return found

    def results(self, examples: int, scores: list[Score], cases: Cases, notes: list[str]) -> Results:
        """The results of this evaluation, with a note if only part of the split was used."""
        data = self.run.recipe.data
        if self.limit:
            notes = [f"only the first {examples:,} examples of the split", *notes]
        return Results(
            self.run.folder.name, data.task, open_corpus(data).name, self.split, examples, scores, cases, notes
        )


def with_other_data(run: Run, overrides: Sequence[str]) -> Run:
    """The run with its data settings overridden (`data.path=...`, `data.test=...`), to evaluate it on other data."""
    for item in overrides:
        require(
            item.startswith("data.") and not item.startswith("data.task"),
            f"{item!r}: only the data of a trained run can be changed, for example data.path=FOLDER",
        )
    return replace(run, recipe=build(Recipe, override(Recipe, asdict(run.recipe), overrides)))


def with_split_alone(run: Run, split: str) -> Run:
    """The run without its settings of other splits: those need not exist where it is evaluated."""
    data = run.recipe.data
    of_train = ("test",) if data.hold_out else ("test", "valid")
    unused = {"train": of_train, "valid": ("test",), "test": ("valid", "hold_out")}.get(split, ())
    defaults = {name: getattr(DataConfig, name) for name in unused}
    return replace(run, recipe=replace(run.recipe, data=replace(data, **defaults)))


def require_split(run: Run, split: str) -> None:
    """Refuse a split that the corpus of a run does not have; the error names those that it has."""
    data = with_split_alone(run, split).recipe.data
    foreign = f"{run.folder} was not trained here and has no data; the whole command: {whole_command(run)}"
    require(bool(data.corpus or data.path), foreign)
    corpus = open_corpus(data)
    if split in corpus.splits:
        return
    if isinstance(corpus, FolderCorpus) and corpus.root.is_file() and format_of(corpus.root) != ".txt":
        try:
            columns_of(data, corpus.root)
        except UserError as error:
            raise UserError(f"{error}; the whole command: {whole_command(run)}") from error
    if isinstance(corpus, FolderCorpus) and not corpus.has_files("train"):
        corpus.files(split)  # raises the error that lists the files: none of them belongs to a split
    held_out = ["valid"] if run.recipe.data.hold_out else []
    known = ", ".join(dict.fromkeys([*corpus.splits, *held_out]))
    raise UserError(
        f"split {split!r}: {corpus.name} has no split of this name; it has {known}: choose one with --split"
    )


def whole_command(run: Run) -> str:
    """The command that evaluates a run on one table, whose columns are to be named."""
    data = run.recipe.data
    path = shlex.quote(data.path) if data.path else "FILE"
    columns = column_settings(data.task)[0]
    return f"clearhead evaluate {shlex.quote(str(run.folder))} --split train data.path={path} {columns}"
