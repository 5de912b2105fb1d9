"""The files of a model: a folder, or a download from the Hugging Face hub. Only JSON, text and safetensors are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from clearhead.config import UserError, require
from clearhead.runs import opened_weights

Json = dict[str, Any]

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
WANTED = ["*.json", "*.safetensors", "*.txt", "*.spm", "*.jinja"]  # no pickle and no code is downloaded
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def find_source(source: str) -> Path:
    """The folder of a model: the source itself, or a download from the hub."""
    require(bool(source), "SOURCE is empty: name a folder, or a model on the hub (owner/model)")
    folder = Path(source)
    if folder.is_dir():
        return folder
    require(
        HUB_NAME.fullmatch(source) is not None and not source.startswith("."),
        f"{source!r}: there is no such folder, and it is not a name on the hub (owner/model)",
    )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise UserError(
            f"{source!r}: there is no such folder; to download a model of this name, pip install huggingface_hub"
        ) from error
    try:
        return Path(snapshot_download(source, allow_patterns=WANTED))
    except Exception as error:  # the library raises many types, all about the name or the network
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{source!r}: there is no such folder, and it cannot be downloaded: {reason}") from error


def read_json(path: Path) -> Json:
    """The object in a JSON file; an empty one if there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    require(isinstance(found, dict), f"{path} is damaged: it has no settings")
    return dict(found)


class WeightFiles(Mapping[str, Tensor]):
    """The tensors of one safetensors file or of several shards, read on access."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = self._find_files()

    def _find_files(self) -> dict[str, Path]:
        """The file of each tensor."""
        index = read_json(self.folder / INDEX).get("weight_map")
        if index is None:
            require(
                (self.folder / SINGLE).is_file(),
                f"{self.folder} has no {SINGLE}: only safetensors are read, because other formats can run code; "
                "save the model with transformers' save_pretrained first",
            )
            with opened_weights(self.folder / SINGLE) as file:
                return dict.fromkeys(file.keys(), self.folder / SINGLE)
        plain = isinstance(index, dict) and all(
            isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors")
            for name in index.values()
        )
        require(plain, f"{self.folder / INDEX} is damaged: it does not name .safetensors files of its folder")
        return {str(name): self.folder / file for name, file in index.items()}

    def size(self) -> int:
        """The number of parameters; only shapes are read."""
        total = 0
        for path in {*self.files.values()}:
            with opened_weights(path) as file:
                total += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
        return total

    def __getitem__(self, name: str) -> Tensor:
        with opened_weights(self.files[name]) as file:
            tensor: Tensor = file.get_tensor(name)
            return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)
