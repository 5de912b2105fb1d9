"""Hugging Face data sets: data.corpus = "hf:NAME", "hf:NAME:CONFIGURATION", or "hf:" and the path of a saved folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clearhead.config import DataConfig, UserError, require, suggest
from clearhead.data.examples import Example
from clearhead.data.readers.fields import SPLITS, columns_of, named_splits, read_examples
from clearhead.data.readers.tables import Location, SelectedFields, TableRow, field_of
from clearhead.data.report import Report


def load(name: str) -> Any:
    """The splits of a data set, read from a folder that `save_to_disk` wrote or downloaded from the hub."""
    try:
        import datasets  # type: ignore[import-untyped]
    except ImportError as error:
        raise UserError(
            f"data.corpus = 'hf:{name}' needs the package datasets; pip install 'clearhead[data]'"
        ) from error
    try:
        if Path(name).is_dir():
            return datasets.load_from_disk(name)
        data_set, _, configuration = name.partition(":")
        return datasets.load_dataset(data_set, configuration or None)
    except Exception as error:  # the library raises many types, all about the name or the network
        raise UserError(f"data.corpus = 'hf:{name}' cannot be loaded: {error}") from error


class HubCorpus:
    """A data set of the `datasets` library; data.train, data.valid and data.test name its splits."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.name = config.corpus
        self.task = config.task
        loaded = load(config.corpus.removeprefix("hf:"))
        self.loaded = loaded if isinstance(loaded, dict) else {config.train: loaded}
        self.reports: dict[str, Report] = {}
        for split in named_splits(config):
            self.rows(split)

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of train, valid and test that the data set has."""
        found = [split for split in SPLITS if getattr(self.config, split) in self.loaded]
        return tuple(dict.fromkeys(found[:1] + ["valid"] * bool(self.config.hold_out) + found[1:]))

    def rows(self, split: str) -> Any:
        """The rows of a split."""
        hold_out = self.config.hold_out
        require(split in SPLITS, f"{self.name} has no split {split!r}; known: {', '.join(SPLITS)}")
        name = getattr(self.config, "train" if split == "valid" and hold_out else split)
        require(
            name in self.loaded, f"data.{split} = {name!r}: no such split in {self.name}; {suggest(name, self.loaded)}"
        )
        rows = self.loaded[name]
        if not hold_out:
            return rows
        border = int(len(rows) * (1 - hold_out))
        begin, end = {"train": (0, border), "valid": (border, len(rows))}.get(split, (0, len(rows)))
        return rows.select(range(begin, end))

    def fingerprint(self, split: str) -> str:
        """The hash of a split that the library computes from its content and history."""
        return str(self.rows(split)._fingerprint)

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split; empty ones are left out and counted."""
        return (example for _, example in self.read_located(split))

    def read_located(self, split: str) -> Iterator[tuple[Location, Example]]:
        """The examples of a split, each with the number of its row."""
        report = self.reports[split] = Report()
        columns = columns_of(self.config, self.name)
        return read_examples(f"{self.name} {split}", self._rows(split, columns), columns, self.config, report)

    def _rows(self, split: str, columns: SelectedFields) -> Iterator[TableRow]:
        """The selected fields of each row of a split."""
        rows = self.rows(split)
        for number, row in enumerate(rows, 1):
            where = Location(f"{self.name} {split}", number)
            fields = (label_name(rows, name, field_of(row, name, where, columns)) for name in columns.names)
            yield TableRow(number, tuple(fields))


def label_name(rows: Any, column: str, value: Any) -> Any:
    """The name of a class, if the data set stores its number; any other value as it is."""
    feature = rows.features.get(column)
    return feature.int2str(int(value)) if hasattr(feature, "int2str") and value not in ("", "-1") else value
