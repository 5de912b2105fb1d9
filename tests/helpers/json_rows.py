"""Rows as JSON lines files, and the batches that are made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clearhead.config import DataConfig
from clearhead.data.batches import Batch
from clearhead.data.loader import Batches, open_batches
from clearhead.text.tokenizer import Tokenizer, Tokenizers

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "red", "birds", "in", "an", "old", "tree"]
LINES = [" ".join(WORDS[start : start + size]) for start in range(9) for size in range(1, 7)]


def write(folder: Path, rows: list[dict[str, Any]], split: str = "train") -> None:
    """Write rows as a JSON lines file."""
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def open_rows(folder: Path, tokenizer: Tokenizer | Tokenizers, rows: list[dict[str, Any]], **settings: Any) -> Batches:
    """The batches of these rows as training data."""
    write(folder, rows)
    return open_batches(DataConfig(path=str(folder), cache=str(folder / "cache"), **settings), tokenizer)


def rows_of(batches: list[Batch], name: str) -> list[list[int]]:
    """One input of all rows of some batches."""
    return [row for batch in batches for row in batch.inputs[name].tolist()]
