"""What `clearhead export` can write: each target is one entry here, and one file with a function `export`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal

Target = Literal["huggingface"]

TARGETS: dict[str, str] = {  # name -> the module whose `export(run folder, new folder)` writes it and returns notes
    "huggingface": "clearhead.exchange.huggingface",  # opened by `transformers`
}


def export_run(run: Path, folder: Path, target: Target) -> list[str]:
    """Write a run into a new folder in the format of the target; return what a user should know about the result."""
    notes: list[str] = import_module(TARGETS[target]).export(run, folder)
    return notes
