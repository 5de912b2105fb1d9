"""Run folders: what training leaves behind, read and checked before anything is done with it.

`run.toml` has every setting, `tokenizer.json` turns text into ids and back, `model.safetensors` holds the weights, and
`facts.json` what only the data could tell. How they came about: `snapshots/`, `metrics.jsonl`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from clearhead.config import Recipe, UserError, require
from clearhead.files import write_file
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly, build_model
from clearhead.recipes import load_recipe
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizers, load_tokenizers

Model = EncoderDecoder | DecoderOnly | EncoderOnly
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Run:
    """A trained model with all that belongs to it, ready for use."""

    folder: Path
    recipe: Recipe
    tokenizers: Tokenizers
    labels: tuple[str, ...]  # classification: the name of each class
    model: Model
    longest: int = 0  # tokens of the longest source that it was trained on; 0: unknown
    one_sentence: bool = False  # whether its sources were single sentences

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
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
    """A run from its folder; one that is missing, unfinished, damaged or of a newer version is refused."""
    folder = Path(folder)
    require(os.path.isdir(folder), f"run {str(folder)!r}: there is no such folder; {meant(folder)}")
    require((folder / "run.toml").is_file(), f"{folder} is no run: there is no run.toml in it; {meant(folder)}")
    try:
        recipe = load_recipe(str(folder / "run.toml"))
    except UserError as error:
        raise UserError(f"run {str(folder)!r} cannot be read: {error}") from error
    require(
        (folder / "model.safetensors").is_file(),
        f"{folder} has no model.safetensors: its training is not finished; `clearhead train {recipe.name} "
        f"--run {folder} --resume` goes on with it",
    )
    model = build_model(recipe.model)
    load_weights(model, folder / "model.safetensors")
    model.requires_grad_(requires_grad=False).eval()
    tokenizers = load_tokenizers(folder)
    there = (recipe.model.source_vocab or recipe.model.vocab, recipe.model.vocab)
    for tokenizer, vocab in zip((tokenizers.source, tokenizers.target), there, strict=True):
        require(
            tokenizer.vocab <= vocab,
            f"{folder} has a tokenizer of {tokenizer.vocab:,} ids, and a model of {vocab:,}: they do not belong "
            "together; take the tokenizer from a copy",
        )
    facts = read_facts(folder / "facts.json")
    return Run(folder, recipe, tokenizers, facts.labels, model.to(device), facts.longest, facts.one_sentence)


def meant(folder: Path) -> str:
    """What somebody may have meant who took this for a run: a text, or a run in it, beside it or in runs/."""
    if " " in str(folder) and len(folder.parts) == 1:
        return "a text comes after its run: clearhead VERB RUN TEXT"
    places = {place for place in (folder, folder.parent, Path("runs")) if os.path.isdir(place)}
    runs = sorted(str(path.parent) for place in places for path in place.glob("*/run.toml"))
    return f"known runs: {', '.join(runs)}" if runs else "`clearhead train RECIPE` makes one"


@dataclass(frozen=True)
class Facts:
    """What only the data could tell."""

    labels: tuple[str, ...] = ()  # the name of each class
    longest: int = 0  # tokens of the longest source
    one_sentence: bool = False  # whether a source is a single sentence

    def write(self, path: Path) -> None:
        """As JSON."""
        write_file(path, json.dumps(asdict(self), ensure_ascii=False))


def read_facts(path: Path) -> Facts:
    """The facts of a run, if it has any."""
    if not path.exists():
        return Facts()
    try:
        facts = json.loads(path.read_text(encoding="utf8"))
        return Facts(tuple(map(str, facts["labels"])), int(facts["longest"]), bool(facts.get("one_sentence")))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}); take it from a copy, or train again") from error


def load_weights(model: nn.Module, path: Path) -> None:
    """Put the weights of a file, or a snapshot, into a model of the same shape."""
    try:
        fill(model, read_weights(path))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


@torch.no_grad()
def fill(
    model: nn.Module, tensors: Mapping[str, Tensor], part: Callable[[Tensor, Tensor], Tensor] = lambda whole, _: whole
) -> None:
    """Copy weights into a model of the same shape; `part` takes what is this process's, where several share one."""
    parameters = dict(model.named_parameters())
    missing, extra = parameters.keys() - tensors.keys(), tensors.keys() - parameters.keys()
    require(
        not missing and not extra,
        f"other weights than the model's: missing {sorted(missing)[:3]}, extra {sorted(extra)[:3]}",
    )
    for name, parameter in parameters.items():
        saved = tuple(tensors[name].shape)
        require(saved == tuple(parameter.shape), f"weights {name} are {saved}, the model's {tuple(parameter.shape)}")
        parameter.copy_(part(tensors[name], parameter))


def write_weights(weights: Mapping[str, Tensor], path: Path, dtype: torch.dtype | None = None) -> None:
    """Write weights with a hash of them, whole or not at all; in another precision if one is given."""
    tensors = {name: t.detach().to("cpu", dtype or t.dtype).contiguous() for name, t in weights.items()}

    def save(temporary: Path) -> None:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        save_tensors(tensors, temporary, {"hash": hash_of(tensors)})

    write_file(path, save)


def save_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file that others may read; what the disk refuses is an OSError."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(0o644)  # safetensors creates it for its owner alone


def read_weights(path: Path) -> Tensors:
    """The weights of a file, refused if they are not those that were written."""
    try:
        with safe_open(path, "pt") as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError) as error:
        raise UserError(f"the weights cannot be read ({error}); take them from a copy, or train again") from error
    known = facts.get("hash")
    require(
        known is None or known == hash_of(tensors),
        "the weights are not those that were written; take them from a copy, or train again",
    )
    return tensors


def hash_of(tensors: Mapping[str, Tensor]) -> str:
    """A hash of the names and the bytes of tensors."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
