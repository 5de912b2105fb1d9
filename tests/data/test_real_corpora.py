"""The corpora of the table in docs/data.md, read with the settings of the table."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import DataConfig
from clearhead.data.examples import texts_of
from clearhead.data.sources import open_corpus
from real_corpora import SHARED, needs_shared

COUNTS: dict[str, tuple[int, ...]] = {
    "multi30k": (29_000, 1_014, 1_000),
    "tatoeba-en-de": (164_600, 2_000, 1_000),
    "tatoeba-en-fr": (161_526, 2_000, 1_000),
    "tinyshakespeare": (1, 1),
    "wikitext-2": (36_718, 3_760, 4_358),
    "books": (133, 4),
    "sst2": (67_349, 872),
    "stsb": (5_749, 1_500),
    "gsm8k": (6_725, 748),
    "flan_cot": (30_095, 3_348),
    "alpaca_5k": (4_499, 499),  # of 4,500 and 500: one answer in each is empty
    "acl_titles": (24_000, 1_249),
}


def documented(name: str) -> dict[str, Any]:
    """The settings of a row of the table in docs/data.md."""
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    return tomllib.loads("\n".join(re.findall(r"`(\w+ = [^`]+)`", row.replace("\\|", "|"))))


@needs_shared
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("books", "flan_cot") else ()) for name in COUNTS]
)
def test_published_corpora_have_their_known_sizes(name: str) -> None:
    opened = open_corpus(DataConfig(path=str(SHARED / name), **documented(name)))
    assert tuple(sum(1 for _ in opened.read(split)) for split in opened.splits) == COUNTS[name]


@needs_shared
def test_tinyshakespeare_is_cut_where_others_cut_it() -> None:
    opened = open_corpus(DataConfig(path=str(SHARED / "tinyshakespeare"), **documented("tinyshakespeare")))
    sizes = [sum(len(texts_of(example)[0]) for example in opened.read(split)) for split in opened.splits]
    assert sizes == [1_003_854, 111_540]
