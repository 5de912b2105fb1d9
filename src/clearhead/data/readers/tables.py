"""The rows of TSV, CSV, JSONL and JSON files.

Every reader streams its file (only a .json array is read at once), and every error names the file and the line.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from clearhead.config import UserError, did_you_mean, require
from clearhead.data.readers.files import format_of, listed, read_lines

csv.field_size_limit(sys.maxsize)  # a field may be a whole document

COLUMN_NAME = re.compile(r"[^\W\d][\w.-]*")
SAMPLE = 100  # rows that tell whether the first one is a header, and what separates the fields of a CSV file
SEPARATORS = ",;\t"
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}


class Location(NamedTuple):
    """The file and line of a row, formatted only when an error needs it."""

    path: Path | str
    line: int

    def __str__(self) -> str:
        is_array = isinstance(self.path, Path) and format_of(self.path) == ".json"
        return f"{self.path}: item {self.line}" if is_array else f"{self.path}:{self.line}"


class TableRow(NamedTuple):
    """The selected fields of a row, and the number of its line."""

    line: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class SelectedFields:
    """Which fields to read: names in a header or in JSON, or numbers from 1; and the settings that gave them."""

    names: tuple[str, ...]
    settings: tuple[str, ...]
    escapes: bool = False  # TSV: replace the escapes \n, \t and \\

    def missing(self, name: str, where: Location, there: Sequence[str]) -> UserError:
        """The error about a field that does not exist."""
        setting = self.settings[self.names.index(name)]
        near = did_you_mean(name, there)
        known = f"it has: {listed(there)}" if there else "it has none"
        return UserError(f"{where}: no field {name!r} (data.{setting}); {known}" + (f"; {near}" if near else ""))

    def positions(self, path: Path, first: Sequence[str]) -> tuple[tuple[int, ...], bool]:
        """The positions of the columns in a table with this first row, and whether that row is a header."""
        numbered = [name.isascii() and name.isdigit() for name in self.names]
        if all(numbered):
            for name in self.names:
                if not 1 <= int(name) <= len(first):
                    raise self.missing(name, Location(path, 1), [str(number + 1) for number in range(len(first))])
            return tuple(int(name) - 1 for name in self.names), False
        for name in self.names:
            if name not in first:
                raise self.missing(name, Location(path, 1), first)
        return tuple(first.index(name) for name in self.names), True


def read_rows(path: Path, columns: SelectedFields) -> Iterator[TableRow]:
    """The rows of a file in any format that has columns."""
    ending = format_of(path)
    if ending in (".tsv", ".csv"):
        return read_table(path, columns)
    if ending in (".jsonl", ".ndjson", ".json"):
        return read_json(path, columns)
    next(read_lines(path))  # refuses what is not plain text
    raise UserError(
        f"{path} is plain text and has no columns, but data.{columns.settings[0]} = {columns.names[0]!r}; "
        f"rename it to .tsv, .csv, .jsonl or .json, according to its format"
    )


def read_table(path: Path, columns: SelectedFields) -> Iterator[TableRow]:
    """The rows of a TSV or CSV file. The first row is a header if the columns are given by name."""
    rows = table_rows(path, columns)
    first_line, first = next(rows, (0, []))
    require(bool(first), f"{path} has no rows; it must have at least one")
    positions, has_header = columns.positions(path, first)
    if not has_header:
        others = list(itertools.islice(rows, SAMPLE))
        named = zip(columns.settings, positions, strict=True)
        require(
            not is_header(first, [fields for _, fields in others]),
            f"{path}:{first_line} looks like a header, and columns that are given by number make it an example; give "
            f"them by name: {' '.join(f'data.{setting}={first[place]}' for setting, place in named)}; or, if it is an "
            "example, move it away from the first line",
        )
        rows = itertools.chain([(first_line, first)], others, rows)
    for line, fields in rows:
        if len(fields) != len(first):
            stray = "a stray tab?" if format_of(path) == ".tsv" else 'a stray comma? Quote texts with commas: "a, b"'
            raise UserError(f"{path}:{line}: {len(fields)} fields, but line {first_line} has {len(first)}; {stray}")
        values = tuple(fields[position] for position in positions)
        yield TableRow(line, tuple(map(unescape, values)) if columns.escapes else values)


def is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a table looks like a header: it has names only, unlike all others, and none recurs."""
    recurs = any(field in column for field, column in zip(first, zip(*others, strict=False), strict=False))
    return bool(others) and is_names(first) and not any(map(is_names, others)) and not recurs


def is_names(fields: Sequence[str]) -> bool:
    """Whether each field could be the name of a column: letters and digits without spaces; none twice."""
    return len(set(fields)) == len(fields) and all(map(COLUMN_NAME.fullmatch, fields))


def table_rows(path: Path, columns: SelectedFields | None = None) -> Iterator[tuple[int, list[str]]]:
    """The rows of a TSV or CSV file, the header included, each with the number of its line."""
    return tsv_rows(path) if format_of(path) == ".tsv" else separated_rows(path, separator_of(path, columns))


def tsv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Lines split at tabs; quotation marks have no special meaning."""
    for line, text in enumerate(read_lines(path), 1):
        yield line, text.removesuffix("\n").split("\t")


def separated_rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of separated values: a quoted field may contain separators, line ends and doubled quotation marks."""
    reader = csv.reader(read_lines(path), strict=True, delimiter=separator)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise UserError(
            f"{path}:{reader.line_num}: not valid CSV ({error}); is a quotation mark left open or not doubled?"
        ) from error


def separator_of(path: Path, columns: SelectedFields | None = None) -> str:
    """What separates the fields of a CSV file: a comma, or what spreadsheets write instead in many countries.

    It is the first of the separators that gives all of the first rows the same fields, among them the columns to read.
    """

    def fits(separator: str, columns: SelectedFields | None) -> bool:
        try:
            rows = [fields for _, fields in itertools.islice(separated_rows(path, separator), SAMPLE)]
            if columns and rows:
                columns.positions(path, rows[0])
        except UserError:
            return False
        several = separator != "," or columns is None  # any line is a row with one field
        return len({len(fields) for fields in rows}) == 1 and len(rows[0]) > several

    attempts = itertools.product((columns, None), SEPARATORS)
    return next((separator for wanted, separator in attempts if fits(separator, wanted)), ",")


def first_fields(path: Path) -> str:
    """The first fields of a table: by name, or by number if it has no header."""
    if format_of(path) in (".tsv", ".csv"):
        row, *others = [row for _, row in itertools.islice(table_rows(path), 1 + SAMPLE)] or [[]]
        return listed(row if is_header(row, others) else [f"{n} ({text[:20]!r})" for n, text in enumerate(row, 1)], 8)
    _, item = next(json_array(path) if format_of(path) == ".json" else json_lines(path), (0, {}))
    return listed(item, 8) if isinstance(item, dict) else "none: its rows are not objects"


def unescape(text: str) -> str:
    r"""Replace the escapes \n, \t and \\ by a line end, a tab and a backslash."""
    return re.sub(r"\\[nt\\]", lambda found: ESCAPES[found[0]], text) if "\\" in text else text


def read_json(path: Path, columns: SelectedFields) -> Iterator[TableRow]:
    """The selected fields of a file of JSON objects, one per line or in one array."""
    for line, row in json_array(path) if format_of(path) == ".json" else json_lines(path):
        if not isinstance(row, dict):
            raise UserError(f"{Location(path, line)}: expected an object {{...}}, not {brief(row)}")
        where = Location(path, line)
        yield TableRow(line, tuple(field_of(row, name, where, columns) for name in columns.names))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The value of each line; blank lines are skipped."""
    for line, text in enumerate(read_lines(path), 1):
        if line == 1 and text.startswith("["):
            raise UserError(f"{path}:1: the beginning of an array; name a file with one array .json")
        if text.strip():
            yield line, parse_json(text.removesuffix("\n"), path, line)


def json_array(path: Path) -> Iterator[tuple[int, Any]]:
    """The items of an array, numbered from 1 instead of by lines."""
    items = parse_json("".join(read_lines(path)), path, 1)
    if isinstance(items, dict):
        raise UserError(
            f"{path} contains one object with the fields {listed(items)}; expected an array of objects "
            f"(or JSON lines, in a file named .jsonl)"
        )
    if not isinstance(items, list):
        raise UserError(f"{path} contains {brief(items)}; expected an array of objects")
    require(len(items) > 0, f"{path} is an empty array; it must contain at least one example")
    return iter(enumerate(items, 1))


def parse_json(text: str, path: Path, line: int) -> Any:
    """Parse a JSON value; an error names its location."""
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair cannot be encoded
    except json.JSONDecodeError as error:
        where = f"{path}:{line + error.lineno - 1}"
        lines = "; name a file of JSON lines .jsonl" if error.msg == "Extra data" and format_of(path) == ".json" else ""
        raise UserError(f"{where}: not valid JSON, column {error.colno}: {error.msg}{lines}") from error
    except UnicodeEncodeError as error:
        raise UserError(f"{path}:{line}: \\u escape of half a character (a lone surrogate); fix that line") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{line}: JSON that cannot be read: {error}") from error
    return value


def field_of(row: dict[str, Any], name: str, where: Location, columns: SelectedFields) -> Any:
    """A field of an object; "translation.en" can also be the field "en" of the object "translation"."""
    if name in row:
        return plain(row[name])
    outer, dot, inner = name.partition(".")
    if dot and isinstance(row.get(outer), dict) and inner in row[outer]:
        return plain(row[outer][inner])
    raise columns.missing(name, where, list(row))


def plain(value: Any) -> Any:
    """Strings and lists as they are; null as empty text; numbers and truth values as text."""
    if isinstance(value, str | list):
        return value
    return "" if value is None else json.dumps(value)


def brief(value: Any) -> str:
    """The beginning of a JSON value, for error messages."""
    text = json.dumps(value)
    return text if len(text) < 40 else text[:40] + " ..."
