"""Run folders: reading them with all checks, and writing weights.

`run.toml` has every setting, `tokenizer.json` turns text into ids and back, `model.safetensors` has the weights, and
`facts.json` what a run must know about its training data. `metrics.jsonl` and `snapshots/` show how it was trained.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.bundled import find_run, names
from clearhead.config import ModelConfig, Recipe, UserError, require
from clearhead.device import require_memory
from clearhead.files import hash_manifest, is_there, write_file
from clearhead.model import Model, build_model
from clearhead.recipes import load_recipe
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizer, Tokenizers, load_tokenizers

Tensors = dict[str, Tensor]

INT8_SCALE = ".int8_scale"  # how the name of the scales of an int8 matrix, one for each row, ends
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.source.json", "tokenizer.target.json")  # of which a run has one or two


@dataclass(frozen=True)
class Run:
    """A trained model, its settings and tokenizers, ready for use."""

    folder: Path
    recipe: Recipe
    tokenizers: Tokenizers
    labels: tuple[str, ...]  # classification: the name of each class
    model: Model
    longest: int = 0  # tokens of the longest source in the training data; 0: unknown
    one_sentence: bool = False  # whether each source in the training data was a single sentence

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def require_verb(self, verb: str) -> None:
        """Reject a verb that the task of this run does not have; the error names one that it has."""
        task = self.recipe.data.task
        verbs = TASKS[task].verbs
        require(
            verb in verbs,
            f"{self.folder} was trained for {task} (model.family = {self.recipe.model.family!r}); "
            f"use it with `clearhead {verbs[0]}`",
        )


def open_run(folder: str | Path, device: str = "cpu") -> Run:
    """Open a run on a device; a folder that is missing, unfinished, damaged or of a newer format is refused."""
    folder = find_run(folder)
    require(is_there(folder), f"run {str(folder)!r}: there is no such folder; {suggest_run(folder)}")
    require(
        (folder / "run.toml").is_file(), f"{folder} is not a run: there is no run.toml in it; {suggest_run(folder)}"
    )
    try:
        recipe = load_recipe(str(folder / "run.toml"))
    except UserError as error:
        raise UserError(f"run {str(folder)!r} cannot be read: {error}") from error
    if not (folder / "model.safetensors").is_file():
        require_started(folder)
        resume = f"`clearhead train --resume {shlex.quote(str(folder))}` continues it"
        raise UserError(f"{folder} has no model.safetensors: its training is not finished; {resume}")
    check_size(recipe.model, folder / "model.safetensors")
    model = model_to_load(recipe.model)
    load_weights(model, folder / "model.safetensors")
    model.requires_grad_(requires_grad=False).eval()
    facts = read_facts(folder / "facts.json")
    require_own_tokenizers(folder, facts)
    tokenizers = load_tokenizers(folder)
    check_vocabulary(folder, tokenizers.source, recipe.model.source_vocab or recipe.model.vocab)
    check_vocabulary(folder, tokenizers.target, recipe.model.vocab)
    return Run(folder, recipe, tokenizers, facts.labels, model.to(device), facts.longest, facts.one_sentence)


def require_started(folder: Path) -> None:
    """Refuse a folder in which no training began: its run.toml is a recipe that somebody wrote there."""
    require(
        any((folder / name).exists() for name in TOKENIZER_FILES),
        f"no run began in {folder}: it has no tokenizer, and its run.toml is a recipe; "
        f"`clearhead train {shlex.quote(str(folder / 'run.toml'))} --run DIR` trains it into another folder",
    )


def model_to_load(config: ModelConfig) -> Model:
    """A model whose weights will be read from a file: no random numbers are drawn for it."""
    with WithoutRandomNumbers():
        return build_model(config)


class WithoutRandomNumbers(TorchFunctionMode):
    """A context in which parameters are not filled with random numbers: weights that are read replace them anyway."""

    SKIPPED = (Tensor.uniform_, Tensor.normal_, nn.init.kaiming_uniform_, nn.init.normal_, nn.init.uniform_)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, unless it fills its first argument with random numbers."""
        kwargs = kwargs or {}
        return [*args, *kwargs.values()][0] if func in self.SKIPPED else func(*args, **kwargs)


def check_vocabulary(folder: Path, tokenizer: Tokenizer, vocab: int) -> None:
    """Refuse a tokenizer with more ids than the model has embeddings."""
    require(
        tokenizer.vocab <= vocab,
        f"{folder} has a tokenizer of {tokenizer.vocab:,} ids, and a model of {vocab:,}: they do not belong "
        "together; take the tokenizer from a copy",
    )


def suggest_run(folder: Path) -> str:
    """The end of an error about a folder that is not a run: the runs inside it, beside it and in runs/."""
    if " " in str(folder) and len(folder.parts) == 1:
        return "a text comes after its run: clearhead VERB RUN TEXT"
    parents = {parent for parent in (folder, folder.parent, Path("runs")) if os.path.isdir(parent)}
    runs = sorted(str(path.parent) for parent in parents for path in parent.glob("*/run.toml"))
    train = f"`clearhead train RECIPE` creates one, and {', '.join(names())} comes with clearhead"
    return f"known runs: {', '.join(runs)}" if runs else train


@dataclass(frozen=True)
class Facts:
    """What a run must know about its training data: the content of facts.json."""

    labels: tuple[str, ...] = ()  # the name of each class
    longest: int = 0  # tokens of the longest source
    one_sentence: bool = False  # whether a source is a single sentence
    tokenizers: Mapping[str, str] = field(default_factory=dict)  # the hash of each tokenizer file; empty: unknown
    data: str = ""  # a hash of the training data; empty: unknown

    def write(self, path: Path) -> None:
        """Write them as JSON, with a hash: labels in another order would be wrong without a word."""
        facts = asdict(self)
        write_file(path, json.dumps(facts | {"hash": hash_manifest(facts, "hash")}, ensure_ascii=False))


def read_facts(path: Path) -> Facts:
    """Read facts.json; without the file, nothing is known."""
    if not path.exists():
        return Facts()
    try:
        facts = json.loads(path.read_text(encoding="utf8"))
        written = facts.get("hash", hash_manifest(facts, "hash"))  # those of older versions have none
        require(written == hash_manifest(facts, "hash"), "it is not what was written")
        longest = int(facts["longest"])
        require(longest >= 0, f"longest = {longest} is negative")
        return Facts(
            tuple(map(str, facts["labels"])),
            longest,
            bool(facts.get("one_sentence")),
            {str(name): str(known) for name, known in facts.get("tokenizers", {}).items()},
            str(facts.get("data", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        cause = str(error) if isinstance(error, UserError) else repr(error)
        raise UserError(f"{path} is damaged ({cause}); take it from a copy, or train again") from error


def hash_tokenizers(folder: Path) -> dict[str, str]:
    """The hash of each tokenizer file of a run."""
    files = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    return {path.name: hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in files}


def require_own_tokenizers(folder: Path, facts: Facts) -> None:
    """Refuse tokenizers that the run was not trained with; runs of older versions have no hashes to compare with."""
    if not facts.tokenizers:
        return
    for name, found in hash_tokenizers(folder).items():
        require(
            facts.tokenizers.get(name) == found,
            f"{folder / name} is not the tokenizer that the run was trained with: its ids stand for other tokens; "
            "take the tokenizer from a copy",
        )
    for name in facts.tokenizers:
        require((folder / name).is_file(), f"{folder / name} is missing; take the tokenizer from a copy")


@contextmanager
def opened_weights(path: Path) -> Iterator[Any]:
    """Open a safetensors file; the error about one that cannot be read says why."""
    try:
        path.open("rb").close()  # safetensors takes a file that may not be read for a missing one
        with safe_open(path, "pt") as file:
            yield file
    except PermissionError as error:
        raise UserError(f"{path}: the weights cannot be read: {error.strerror}; change its permissions") from error
    except (OSError, SafetensorError) as error:
        problem = f"{path}: the weights cannot be read ({error})"
        raise UserError(f"{problem}; take them from a copy") from error


def check_size(config: ModelConfig, path: Path) -> None:
    """Refuse a model that is larger than the weights in its file, or than the memory, before it is built."""
    with opened_weights(path) as file:  # reads the names and shapes only
        size = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    least = least_parameters(config)
    require(
        least <= size,
        f"{path} has {size:,} parameters, and the model of run.toml at least {least:,}: they do not belong together; "
        "take both files from a copy",
    )
    require_memory(size * 4, "cpu", f"the model of {path.parent}", "use a smaller one")


def least_parameters(config: ModelConfig) -> int:
    """Return a lower bound of the number of parameters: two matrices of attention and two of each feed-forward layer.

    Every size of the architecture is part of it, so that no setting can make the model much larger than this.
    """
    encoder = (config.encoder_layers or config.layers) if config.family == "encoder-decoder" else 0
    rows = config.vocab + config.segments + config.classes
    rows += config.source_vocab if config.tied != "all" else 0
    rows += config.max_length if config.position == "learned" else 0
    blocks = encoder + config.layers
    return config.d_model * (rows + 2 * blocks * (config.query_size + config.d_ff))


def load_weights(model: nn.Module, path: Path) -> None:
    """Copy the weights of a file, such as a snapshot, into a model of the same shape."""
    weights = read_weights(path)
    try:
        copy_weights(model, weights)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


@torch.no_grad()
def copy_weights(
    model: nn.Module, tensors: Mapping[str, Tensor], shard: Callable[[Tensor, Tensor], Tensor] = lambda whole, _: whole
) -> None:
    """Copy weights into a model of the same shape; `shard` returns this process's part of a whole tensor."""
    parameters = dict(model.named_parameters())
    missing = parameters.keys() - tensors.keys()
    extra = tensors.keys() - parameters.keys()
    require(
        not missing and not extra,
        f"the weights are not those of this model: missing {sorted(missing)[:3]}, extra {sorted(extra)[:3]}",
    )
    for name, parameter in parameters.items():
        saved = tuple(tensors[name].shape)
        require(saved == tuple(parameter.shape), f"weights {name} are {saved}, the model's {tuple(parameter.shape)}")
        parameter.copy_(shard(tensors[name], parameter))


def write_weights(
    weights: Mapping[str, Tensor], path: Path, dtype: torch.dtype | None = None, about: Mapping[str, str] | None = None
) -> None:
    """Write weights atomically, with their hash and the metadata `about`; `dtype`: in another precision."""
    tensors = {name: t.detach().to("cpu", dtype or t.dtype).contiguous() for name, t in weights.items()}

    def save(temporary: Path) -> None:
        temporary.parent.mkdir(exist_ok=True)
        save_tensors(tensors, temporary, {**(about or {}), "hash": hash_tensors(tensors)})

    write_file(path, save)


def save_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file with the permissions of any other new file; errors of the disk are raised as OSError."""
    path.touch()
    permissions = path.stat().st_mode
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(permissions)  # safetensors makes it readable by its owner only


def read_weights(path: Path) -> Tensors:
    """Read the weights of a file; a file whose content does not match its hash is refused."""
    with opened_weights(path) as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    written = metadata.get("hash")
    require(
        written is None or written == hash_tensors(tensors),
        f"{path}: the weights are not those that were written; take them from a copy, or train again",
    )
    return dequantised(tensors)


def dequantised(tensors: Tensors) -> Tensors:
    """Weights with each matrix of int8 in float32: its rows, multiplied by their scales."""
    scales = {name.removesuffix(INT8_SCALE): tensors[name] for name in tensors if name.endswith(INT8_SCALE)}
    own = {name: tensor for name, tensor in tensors.items() if not name.endswith(INT8_SCALE)}
    return own | {name: own[name].float() * scale[:, None] for name, scale in scales.items()}


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Hash the names and bytes of tensors."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
