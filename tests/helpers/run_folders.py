"""The files of a run folder, and a recipe with other settings of training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from clearhead.config import Recipe


def content_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def changed(recipe: Recipe, **settings: Any) -> Recipe:
    return replace(recipe, train=replace(recipe.train, **settings))
