"""Checkpoints: all that a run needs to go on as if it had never stopped, written so that no crash can hurt it.

A checkpoint is a folder `checkpoints/step-00001000` with tensors as safetensors and a manifest that knows the hash of
each file. It is written beside, seen to the disk and renamed: there is all of it, or none. The two newest are kept.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import Optimizer

from clearhead.config import UserError, require
from clearhead.files import hidden_folder, problem_of, publish_folder, remove_folder
from clearhead.runs import Tensors, fill, save_tensors
from clearhead.train.parallel import Group, part_like, seed_process

FORMAT = 1
KEEP = 2


@dataclass(frozen=True)
class Checkpoint:
    """What was saved: named groups of tensors, and plain facts."""

    step: int
    tensors: dict[str, Tensors]  # model, optimiser, random; perhaps average
    facts: dict[str, Any]


def save_checkpoint(run: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint, whole or not at all, and drop all but the newest two."""
    folder = run / "checkpoints"
    final = folder / f"step-{checkpoint.step:08d}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hidden_folder(final) as hidden:
            write_checkpoint(hidden, checkpoint)
            publish_folder(hidden, final)
    except OSError as error:
        problem = f"cannot save the checkpoint of step {checkpoint.step:,} to {folder}: {problem_of(error)}"
        raise UserError(f"{problem}; solve this, and continue with --resume") from error
    for old in checkpoint_folders(run)[:-KEEP]:
        remove_folder(old)
    for leftover in folder.glob(".*"):  # from a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    return final


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the files of a checkpoint into an empty folder."""
    for name, tensors in checkpoint.tensors.items():
        save_tensors({key: t.detach().cpu().contiguous() for key, t in tensors.items()}, folder / f"{name}.safetensors")
    files = {path.name: hash_file(path) for path in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "step": checkpoint.step, "files": files, "facts": checkpoint.facts}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf8")


def hash_file(path: Path) -> str:
    """A hash of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def checkpoint_folders(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-*"))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint, refusing one that is not what was written."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf8"))
        require(manifest["format"] <= FORMAT, f"{folder} was written by a newer clearhead; update to read it")
        changed = [name for name, known in manifest["files"].items() if hash_file(folder / name) != known]
        if changed:
            raise ValueError(f"{', '.join(changed)} is not what was written")
        tensors = {Path(name).stem: load_file(folder / name) for name in manifest["files"]}
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        earlier = [other for other in checkpoint_folders(folder.parent.parent) if other.name < folder.name]
        remedy = f"remove the folder to go on from {earlier[-1].name}" if earlier else "start the run again"
        raise UserError(f"checkpoint {folder} is damaged ({error}); {remedy}") from error
    return Checkpoint(manifest["step"], tensors, manifest["facts"])


# --- what is saved ----------------------------------------------------------------------------------------------------


def model_tensors(model: nn.Module) -> Tensors:
    """The weights by name, tied ones once; of a model that processes share, this one's part: see `Group.gather`."""
    return {name: p.detach() for name, p in model.named_parameters()}


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put saved weights into a model of the same shape."""
    fill(model, tensors, part_like)


def optimiser_tensors(model: nn.Module, optimisers: list[Optimizer]) -> Tensors:
    """What the optimisers remember of each parameter."""
    names = {id(p): name for name, p in model.named_parameters()}
    return {
        f"{names[id(p)]}/{key}": value
        for optimiser in optimisers
        for p, memory in optimiser.state.items()
        for key, value in memory.items()
    }


def restore_optimisers(model: nn.Module, optimisers: list[Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Give the optimisers their memory back."""
    names = {id(p): name for name, p in model.named_parameters()}
    for optimiser in optimisers:
        for p in (p for group in optimiser.param_groups for p in group["params"]):
            prefix = names[id(p)] + "/"
            memory = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
            optimiser.state[p] = {key: part_like(value, p) for key, value in memory.items()}


def random_tensors(group: Group) -> Tensors:
    """The state of each process's random numbers, on the CPU and on the GPU in use, as `cpu.0`, `cpu.1`, ..."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return {f"{name}.{rank}": each for name, state in states.items() for rank, each in enumerate(group.each(state))}


def restore_random(tensors: Mapping[str, Tensor], group: Group, seed: int, step: int) -> None:
    """Go on with the same random numbers; if another number of processes saved them, with new ones."""
    if sum(name.startswith("cpu.") for name in tensors) != group.world:
        seed_process(seed, step, group.rank)
        return
    torch.set_rng_state(tensors[f"cpu.{group.rank}"])
    if f"cuda.{group.rank}" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors[f"cuda.{group.rank}"])
