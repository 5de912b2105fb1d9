"""What words mean and how English and French say them: three TOML files, read once.

`english.toml` and `french.toml` have the same concepts, word for word; `concepts.toml` says what goes with what.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_lexicon(name: str) -> dict[str, Any]:
    """The tables of one lexicon file."""
    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf8"))


ENGLISH = read_lexicon("english")
FRENCH = read_lexicon("french")
CONCEPTS = read_lexicon("concepts")


def expand_kinds(words: str) -> tuple[str, ...]:
    """All nouns that some words name, each by itself ("cat") or by its kind ("animal"), in the lexicon's order."""
    wanted = words.split()
    return tuple(
        noun for noun, kinds in CONCEPTS["noun"].items() if noun in wanted or any(k in wanted for k in kinds.split())
    )
