"""Two aligned files: line n of one belongs to line n of the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clearhead.config import UserError
from clearhead.data.readers.files import read_lines
from clearhead.data.readers.tables import TableRow

Lengths = npt.NDArray[np.int64]
LIKELY = 10  # mean misfits of a line by which a place may fit worse than the best one
NARROW = 50  # lines: where the alignment is lost is said if it can be narrowed down to so many


def aligned_lines(source: Path, target: Path) -> Iterator[TableRow]:
    """The lines of two files, in pairs; if their numbers differ, the error says where the alignment is lost."""
    pairs = itertools.zip_longest(read_lines(source), read_lines(target))
    for line, (first, second) in enumerate(pairs, 1):
        if first is None or second is None:
            raise UserError(misalignment(source, target))
        yield TableRow(line, (first.removesuffix("\n"), second.removesuffix("\n")))


def misalignment(source: Path, target: Path) -> str:
    """The error message for two files that have different numbers of lines."""
    lengths = [np.array([len(line) for line in read_lines(path)]) for path in (source, target)]
    long, short = sorted(lengths, key=len, reverse=True)
    counts = f"{source} has {len(lengths[0]):,} lines, {target} {len(lengths[1]):,}"
    first, last = likely_places(long, short)
    if last - first >= min(NARROW, len(short) / 2):
        where = "line lengths do not tell where the alignment is lost (look at the ends of both files first)"
    elif last == len(short):
        later = "" if first == last else " or a later one"
        where = f"the shorter file seems to be truncated after line {first:,}{later}"
    else:
        place = f"line {first + 1:,}" if first == last else f"lines {first + 1:,} to {last + 1:,}"
        where = f"judging by line lengths, the first wrong pair is in {place}"
        where += ", if all missing lines are in one place" if len(long) > len(short) + 1 else ""
    return f"{counts}: {where}; line n of one must belong to line n of the other"


def likely_places(long: Lengths, short: Lengths) -> tuple[int, int]:
    """The least and the greatest likely number of lines before the extra ones of the longer file, in one place.

    If each misfit has a Laplace distribution, a place is e^-LIKELY times as likely as the best one, or more.
    """
    fit = misfits(long, short)
    likely = np.flatnonzero(fit <= fit.min() * (1 + LIKELY / len(short)) + 1e-9)
    return int(likely[0]), int(likely[-1])


def misfits(long: Lengths, short: Lengths) -> npt.NDArray[np.float64]:
    """How badly line lengths fit if the extra lines of the longer file come after 0, 1, ... lines."""
    extra = len(long) - len(short)
    longer = np.log1p(long)
    shorter = np.log1p(short)
    ratio = np.median(longer) - np.median(shorter)
    before = np.abs(longer[: len(short)] - shorter - ratio)  # misfit of each line if the extra lines come after it
    after = np.abs(longer[extra:] - shorter - ratio)  # and if they come before it
    return np.concatenate([[0], np.cumsum(before)]) + np.concatenate([np.cumsum(after[::-1])[::-1], [0]])
