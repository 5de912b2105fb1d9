"""Open and read a folder of data files, and catch the error of a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import DataConfig, UserError
from clearhead.data.examples import Example
from clearhead.data.readers.folder import FolderCorpus


def corpus(path: Path, **settings: Any) -> FolderCorpus:
    """The corpus in a folder or file, with these settings of `data`."""
    return FolderCorpus(DataConfig(path=str(path), **settings))


def read(path: Path, split: str = "train", **settings: Any) -> list[Example]:
    """The examples of a split of such a corpus."""
    return list(corpus(path, **settings).read(split))


def error_of(call: Callable[[], object]) -> str:
    """The message of the UserError that a call must raise."""
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value)


def write_aligned(folder: Path, sources: list[str], targets: list[str]) -> None:
    """Write train.en and train.de, line by line."""
    (folder / "train.en").write_text("".join(f"{line}\n" for line in sources), encoding="utf8")
    (folder / "train.de").write_text("".join(f"{line}\n" for line in targets), encoding="utf8")
