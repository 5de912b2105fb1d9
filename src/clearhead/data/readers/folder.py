"""Your own file or folder as a corpus, read as `DataConfig` says."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from clearhead.config import DataConfig, require
from clearhead.data.examples import Document, Example
from clearhead.data.readers.aligned import aligned_lines
from clearhead.data.readers.documents import DocumentPart, join, read_parts, split_document
from clearhead.data.readers.fields import EMPTY, SPLITS, columns_of, named_splits, read_examples
from clearhead.data.readers.files import (
    digest_of,
    entries,
    existing,
    find,
    format_of,
    listed,
    matching,
    read_lines,
    unpacked_name,
)
from clearhead.data.readers.tables import Location, TableRow, read_rows
from clearhead.data.report import Report
from clearhead.tasks import TASKS


class FolderCorpus:
    """The files below `data.path`. After a split is read, `reports[split]` says what was left out."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.task = config.task
        self.root = existing(Path(config.path).expanduser(), "data.path")
        self.name = self.root.absolute().name
        self.reports: dict[str, Report] = {}
        require(
            not (config.hold_out and self.root.is_dir() and self._matching("valid")),
            f"data.hold_out = {config.hold_out}, but there is a file for data.valid = {config.valid!r} in {self.root}; "
            f"set hold_out = 0 or another data.valid",
        )
        for split in named_splits(config):
            self.files(split)

    @property
    def splits(self) -> tuple[str, ...]:
        """Train, and each other split that has files."""
        others = [split for split in ("valid", "test") if self.has_files(split)]
        held_out = ["valid"] if self.config.hold_out else []
        return ("train", *held_out, *others)

    def has_files(self, split: str) -> bool:
        """Whether there are files of a split; a single file is train."""
        return bool(self._matching(split)) if self.root.is_dir() else split == "train"

    @property
    def _aligned(self) -> bool:
        """Whether source and target are in two files, such as train.en and train.de."""
        config = self.config
        if TASKS[config.task].example != "pair" or not self.root.is_dir() or not (config.source and config.target):
            return False
        return bool({f".{config.source}", f".{config.target}"} & self._suffixes)

    @property
    def _suffixes(self) -> set[str]:
        """The suffixes of the files beside those of the splits."""
        config = self.config
        folders = {(self.root / getattr(config, split)).parent for split in SPLITS}
        paths = [path for folder in folders if folder.is_dir() for path in entries(folder)]
        return {Path(unpacked_name(path)).suffix for path in paths}

    def _require_sides(self, pattern: str) -> None:
        """Refuse a source or target that is no file's suffix, if files of this name have other suffixes."""
        sides = {"source": self.config.source, "target": self.config.target}
        if TASKS[self.task].example != "pair" or not all(sides.values()):
            return
        suffixes = self._suffixes
        missing = [side for side, suffix in sides.items() if f".{suffix}" not in suffixes]
        if not missing:
            return
        side = missing[0]
        named = [path.name for path in matching(self.root, f"{pattern}.*")]
        require(
            not named or bool(matching(self.root, pattern)),
            f"data.{side} = {sides[side]!r}: there is no {pattern}.{sides[side]} in {self.root}, but {listed(named)}; "
            f"set data.source and data.target to the suffixes of your files",
        )

    def _matching(self, split: str) -> list[Path]:
        """The files of a split, perhaps none; of aligned files, those of the source."""
        pattern = getattr(self.config, split)
        return matching(self.root, f"{pattern}.{self.config.source}" if self._aligned else pattern)

    def files(self, split: str) -> list[tuple[Path, ...]]:
        """The files of a split; aligned files are paired."""
        require(split in SPLITS, f"{self.root} has no split {split!r}; known: {', '.join(SPLITS)}")
        if split == "valid" and self.config.hold_out:
            split = "train"
        if self.root.is_file():
            require(
                split == "train",
                f"data.path = {str(self.root)!r} is one file, so there is no {split}; "
                f"set data.hold_out to use a part of it for valid, or set data.path to a folder",
            )
            return [(self.root,)]
        pattern = getattr(self.config, split)
        self._require_sides(pattern)
        if not self._aligned:
            return [(path,) for path in find(self.root, pattern, f"data.{split}")]
        sides = [self.config.source, self.config.target]
        sources, targets = (find(self.root, pattern, f"data.{split}", f".{side}") for side in sides)
        stems = [[Path(unpacked_name(path)).stem for path in side] for side in (sources, targets)]
        alone = sorted(set(stems[0]) ^ set(stems[1]))
        require(
            stems[0] == stems[1],
            f"data.{split} = {pattern!r} in {self.root}: {', '.join(alone)} exists for only one of "
            f".{sides[0]} and .{sides[1]}",
        )
        return list(zip(sources, targets, strict=True))

    def fingerprint(self, split: str) -> str:
        """A hash of the files of a split."""
        return digest_of([path for paths in self.files(split) for path in paths])

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split, in the order of files and lines; empty ones are left out and counted."""
        if TASKS[self.task].example == "document":
            return (Document(document) for document in join(self.document_parts(split)))
        return (example for _, example in self.read_located(split))

    def read_located(self, split: str) -> Iterator[tuple[Location, Example]]:
        """The examples of a split, each with its file and line."""
        report = self.reports[split] = Report()
        for paths in self.files(split):
            yield from self._examples_of(paths, split, report)

    def document_parts(self, split: str) -> Iterator[DocumentPart]:
        """The documents of a split in parts, so that no document needs to fit in memory."""
        report = self.reports[split] = Report()
        for paths in self.files(split):
            if format_of(paths[0]) == ".txt":
                yield from self._plain_text_parts(paths[0], split, report)
                continue
            for _, example in self._examples_of(paths, split, report):
                assert isinstance(example, Document)
                yield from split_document(example.text)

    def _plain_text_parts(self, path: Path, split: str, report: Report) -> Iterator[DocumentPart]:
        """The documents of a plain text file, or of the characters that belong to the split, in parts."""
        size = sum(map(len, read_lines(path))) if self.config.hold_out else 0
        begin, end = self._range_of(split, size, path) if size else (0, sys.maxsize)
        opening = True  # whether the next part begins a document
        for part in read_parts(path, self.config.separator, begin, end):
            if opening and part.last and not part.text:
                report.add(EMPTY, str(path))
            else:
                yield part
            opening = part.last

    def _examples_of(self, paths: tuple[Path, ...], split: str, report: Report) -> Iterator[tuple[Location, Example]]:
        """The examples of a file that belong to a split."""
        columns = columns_of(self.config, paths[0])

        def rows() -> Iterator[TableRow]:
            return aligned_lines(*paths) if len(paths) == 2 else read_rows(paths[0], columns)

        found = rows()
        if self.config.hold_out:
            begin, end = self._range_of(split, sum(1 for _ in rows()), paths[0])
            found = itertools.islice(found, begin, end)
        return read_examples(paths[0], found, columns, self.config, report)

    def _range_of(self, split: str, size: int, path: Path) -> tuple[int, int]:
        """Where a split begins and ends in a file of `size` rows or characters, some of which are held out."""
        border = int(size * (1 - self.config.hold_out))
        begin, end = (0, border) if split == "train" else (border, size)
        require(begin < end, f"data.hold_out = {self.config.hold_out} leaves no part of {path} for {split}; lower it")
        return begin, end
