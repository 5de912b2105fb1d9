"""What other tools call a setting or an option, and how it is written here: for the errors about unknown names."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def habits() -> dict[str, str]:
    """The table of habits.toml: names that are separated by spaces -> what is written instead."""
    import tomllib  # only after a mistake: it would slow the start of every command

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf8"))


def written_here(name: str) -> str:
    """What is written instead of a name, an option or a setting that other tools have; empty: no tool is known."""
    word = name.lstrip("-").partition("=")[0].rpartition(".")[2].replace("-", "_").lower()
    return next((remedy for names, remedy in habits().items() if word in names.split()), "")
