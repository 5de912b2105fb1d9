"""Checkpoints: everything a run needs to continue as if it had never stopped, written atomically.

A checkpoint is a folder `checkpoints/step-00001000` of safetensors files, with a manifest that has the hash of each
file. It is written to a hidden folder and renamed when complete. The two newest are kept. Small ones are written in a
thread, while training goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import Optimizer

from clearhead.config import UserError, require
from clearhead.files import hash_manifest, hidden_folder, problem_of, publish_folder, remove_folder
from clearhead.runs import Tensors, copy_weights, save_tensors
from clearhead.train.parallel import Group, seed_process, shard_like

CHECKPOINT_FORMAT = 1
KEEP = 2  # checkpoints
LARGEST_COPY = 2**30  # bytes of a checkpoint that is copied, to be written while training goes on


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: groups of tensors, one file each, and a few numbers."""

    step: int
    tensors: dict[str, Tensors]  # model, optimiser, random; average and best if there are any
    facts: dict[str, Any]

    @property
    def size(self) -> int:
        """The bytes of all tensors."""
        return sum(t.nbytes for group in self.tensors.values() for t in group.values())

    def copied(self) -> Checkpoint:
        """A copy of the checkpoint on the CPU, which training cannot change."""
        copies = {
            name: {key: t.detach().to("cpu", copy=True) for key, t in group.items()}
            for name, group in self.tensors.items()
        }
        return replace(self, tensors=copies)


class CheckpointWriter:
    """Writes checkpoints, one at a time; in a thread, while training goes on, if they are small enough to be copied."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.pending: Future[Path] | None = None  # the one that is being written

    def write(self, run: Path, checkpoint: Checkpoint) -> None:
        """Begin to write a checkpoint, when the last one is written."""
        self.wait()
        if checkpoint.size <= LARGEST_COPY:
            self.pending = self.pool.submit(save_checkpoint, run, checkpoint.copied())
        else:
            save_checkpoint(run, checkpoint)

    def check(self) -> None:
        """Raise the error that prevented the last one, if it has failed by now."""
        if self.pending is not None and self.pending.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the last one is written; an error that prevented it is raised here."""
        pending = self.pending
        self.pending = None
        if pending is not None:
            pending.result()

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait; an error that ends the training already is not replaced by that of a checkpoint."""
        with contextlib.suppress(UserError) if kind else contextlib.nullcontext():
            self.wait()


def save_checkpoint(run: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint atomically, and delete all but the newest two."""
    folder = run / "checkpoints"
    final = folder / f"step-{checkpoint.step:08d}"
    try:
        folder.mkdir(exist_ok=True)
        with hidden_folder(final) as hidden:
            write_checkpoint(hidden, checkpoint)
            publish_folder(hidden, final)
        for old in checkpoint_folders(run)[:-KEEP]:
            remove_folder(old)
    except OSError as error:
        problem = f"cannot save the checkpoint of step {checkpoint.step:,} to {folder}: {problem_of(error)}"
        raise UserError(f"{problem}; solve this, and continue with --resume") from error
    for leftover in folder.glob(".*"):  # from a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    return final


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the files of a checkpoint into an empty folder."""
    for name, tensors in checkpoint.tensors.items():
        save_tensors({key: t.detach().cpu().contiguous() for key, t in tensors.items()}, folder / f"{name}.safetensors")
    files = {path.name: hash_file(path) for path in sorted(folder.iterdir())}
    manifest = {"format": CHECKPOINT_FORMAT, "step": checkpoint.step, "files": files, "facts": checkpoint.facts}
    manifest["hash"] = hash_manifest(manifest, "hash")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf8")


def hash_file(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def checkpoint_folders(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-*"))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint; one that differs from what was written is refused."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf8"))
        require(
            manifest["format"] <= CHECKPOINT_FORMAT, f"{folder} was written by a newer clearhead; update to read it"
        )
        expected = hash_manifest(manifest, "hash")
        if manifest.get("hash", expected) != expected:  # earlier versions wrote none
            raise ValueError("manifest.json differs from what was written")
        if folder.name != f"step-{manifest['step']:08d}":
            raise ValueError(f"manifest.json is that of step {manifest['step']}")
        changed = [name for name, known in manifest["files"].items() if hash_file(folder / name) != known]
        if changed:
            raise ValueError(f"{', '.join(changed)} differs from what was written")
        tensors = {Path(name).stem: load_file(folder / name) for name in manifest["files"]}
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        earlier = [other for other in checkpoint_folders(folder.parent.parent) if other.name < folder.name]
        remedy = f"remove the folder to continue from {earlier[-1].name}" if earlier else "start the run again"
        raise UserError(f"checkpoint {folder} is damaged ({error}); {remedy}") from error
    return Checkpoint(manifest["step"], tensors, manifest["facts"])


# --- the tensors of a checkpoint --------------------------------------------------------------------------------------


def model_tensors(model: nn.Module) -> Tensors:
    """The weights by name, tied ones once; with FSDP the shards of this process, see `Group.gather`."""
    return {name: p.detach() for name, p in model.named_parameters()}


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy saved weights into a model of the same shape."""
    copy_weights(model, tensors, shard_like)


def optimiser_tensors(model: nn.Module, optimisers: list[Optimizer]) -> Tensors:
    """The state of the optimisers for each parameter, as `decoder.embedding.weight/exp_avg`."""
    names = {id(p): name for name, p in model.named_parameters()}
    return {
        f"{names[id(p)]}/{key}": value
        for optimiser in optimisers
        for p, state in optimiser.state.items()
        for key, value in state.items()
    }


def restore_optimisers(model: nn.Module, optimisers: list[Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Restore the state of the optimisers."""
    names = {id(p): name for name, p in model.named_parameters()}
    for optimiser in optimisers:
        for p in (p for group in optimiser.param_groups for p in group["params"]):
            prefix = names[id(p)] + "/"
            state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
            optimiser.state[p] = {key: shard_like(value, p) for key, value in state.items()}


def random_tensors(group: Group) -> Tensors:
    """The states of the random number generators of all processes, as `cpu.0`, `cpu.1`, ..., `cuda.0`, ..."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return {f"{name}.{rank}": state for name, own in states.items() for rank, state in enumerate(group.all_gather(own))}


def restore_random(tensors: Mapping[str, Tensor], group: Group, seed: int, step: int) -> None:
    """Restore the random number generators; if another number of processes saved them, they get new seeds."""
    if sum(name.startswith("cpu.") for name in tensors) != group.world:
        seed_process(seed, step, group.rank)
        return
    torch.set_rng_state(tensors[f"cpu.{group.rank}"])
    if f"cuda.{group.rank}" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors[f"cuda.{group.rank}"])
