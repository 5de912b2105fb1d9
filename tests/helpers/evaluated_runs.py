"""Runs on small data files, to be evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from clearhead.config import DataConfig
from clearhead.runs import Run
from tiny_runs import SENTENCES


def run_on(folder: Path, run: Run, **data: Any) -> Run:
    """The run with its data replaced by the files of a folder."""
    settings = DataConfig(task=run.recipe.data.task, path=str(folder), cache=str(folder / "cache"), **data)
    return replace(run, folder=folder, recipe=replace(run.recipe, data=settings))


def write_pairs(folder: Path, count: int = 9) -> None:
    for split in ("train", "test"):
        for side in ("en", "fr"):
            lines = [f"{SENTENCES[i % 4]}{' again' * i}" for i in range(count)]
            (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")
