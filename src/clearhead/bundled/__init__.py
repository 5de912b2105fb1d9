"""The runs that come with clearhead, and how a command line tells a run from a text.

A run is named by its folder, or by its name if it comes with clearhead. Where a verb can do without a run, the first
argument is one if it is such a name, a folder, or written like a path; anything else is a text, and the run is the
translator that comes with clearhead.
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from pathlib import Path

from clearhead.config import require

FOLDER = Path(__file__).parent
TRANSLATOR = "english-french"


def names() -> list[str]:
    """The names of the runs that come with clearhead."""
    return sorted(path.parent.name for path in FOLDER.glob("*/run.toml"))


def find_run(run: str | Path) -> Path:
    """The folder of a run: the one that is given, or that of the run of this name, if there is no such folder."""
    known = FOLDER / run
    return known if not os.path.isdir(run) and str(run) in names() else Path(run)


def run_and_texts(arguments: Sequence[str], known: Container[str] = ()) -> tuple[str, list[str]]:
    """Return the run that arguments begin with, or else the translator, and the texts; `known`: further names."""
    first, *others = arguments or ("",)
    if is_run(first) or first in known:
        return first, others
    beside = Path("runs") / first
    require(
        not (first and os.path.isfile(beside / "run.toml")),
        f"{first!r} is not a folder here, but {beside} is a run: give {beside}; to translate the word itself, name the "
        f"translator first: {TRANSLATOR} {first}",
    )
    return TRANSLATOR, list(arguments)


def is_run(argument: str) -> bool:
    """Whether an argument names a run: a folder or a name that exists, or what is written like a path."""
    if not argument.strip():
        return False
    return argument in names() or os.path.isdir(argument) or (os.sep in argument and " " not in argument)
