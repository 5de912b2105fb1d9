"""The words and templates of the corpora, as TOML files.

`english.toml` and `french.toml` say the same concepts in each language; `concepts.toml` says which ones go together.
The other files have the words and templates of one corpus each, which reads its own.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_lexicon(name: str) -> dict[str, Any]:
    """The tables of one lexicon file, read once."""
    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf8"))


ENGLISH = read_lexicon("english")
FRENCH = read_lexicon("french")
CONCEPTS = read_lexicon("concepts")


def expand_kinds(words: str) -> tuple[str, ...]:
    """All nouns named in `words`, by themselves ("cat") or by their kind ("animal"), in the order of the lexicon."""
    wanted = words.split()
    return tuple(
        noun for noun, kinds in CONCEPTS["noun"].items() if noun in wanted or any(k in wanted for k in kinds.split())
    )
