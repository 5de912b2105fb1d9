"""LoRA: train a low-rank adapter beside each frozen matrix, W + scale · B A, and merge it into W at the end."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import require
from clearhead.runs import Tensors, hash_tensors, opened_weights, read_weights, write_weights

ADAPTER = "adapter.safetensors"
WEIGHTS = "model.safetensors"
A = ".correction_a"  # how the names of an adapter's two matrices end
B = ".correction_b"
SCALE = 2.0  # of the adapter: alpha / rank in the paper


class LoRALinear(nn.Linear):
    """A linear layer whose weight is frozen, with a trainable low-rank adapter, which starts at zero: B is 0."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__(base.in_features, base.out_features, base.bias is not None, device="meta")
        self.weight = base.weight
        self.bias = base.bias
        self.correction_a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.correction_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.correction_a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """W x + scale · B (A x): the product B A is never computed as a matrix."""
        return super().forward(x) + SCALE * F.linear(F.linear(x, self.correction_a), self.correction_b)


def add_lora(model: nn.Module, rank: int, patterns: str) -> None:
    """Freeze a model, except for what matches one of the patterns by its name; what is frozen already stays frozen.

    A linear layer gets a trainable adapter. An embedding is trained whole: tokens that the model has never seen, like
    those that mark a turn, need more than a low-rank change. Logits that are tied to it change with it.
    """
    embeddings = {name: module for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    tied = {id(module.weight) for module in embeddings.values()}
    linears = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and id(module.weight) not in tied
    }
    matrices = {**linears, **embeddings}
    matching: dict[str, None] = {}  # in order, each once
    for pattern in patterns.split() or [""]:
        names = [name for name in matrices if fnmatch.fnmatchcase(name, pattern)]
        require(bool(names), f"train.lora_on: no matrix matches {pattern!r}; names look like {next(iter(linears))}")
        matching |= dict.fromkeys(names)
    chosen = [name for name in matching if matrices[name].weight.requires_grad]
    require(bool(chosen), f"train.lora_on = {patterns!r}: train.freeze excludes all of it; change one of the two")
    ranks = [min(linears[name].weight.shape) for name in chosen if name in linears]
    highest = max(ranks, default=rank)
    require(rank <= highest, f"train.lora = {rank}: no matrix of train.lora_on has a rank above {highest}; lower it")
    model.requires_grad_(False)
    for name in chosen:
        if name in embeddings:
            embeddings[name].requires_grad_(True)
        else:
            replace_module(model, name, LoRALinear(linears[name], rank))


@torch.no_grad()
def merge_lora(model: nn.Module) -> None:
    """Merge every adapter into its frozen matrix: plain linear layers again, with the same outputs."""
    for name, module in list(model.named_modules()):
        if isinstance(module, LoRALinear):
            module.weight += SCALE * module.correction_b @ module.correction_a
            plain = nn.Linear(module.in_features, module.out_features, module.bias is not None, device="meta")
            plain.weight = module.weight
            plain.bias = module.bias
            replace_module(model, name, plain)


def write_adapter(weights: Mapping[str, Tensor], trained: Collection[str], base: str, path: Path) -> None:
    """Write what differs from the base run: trained weights, and weights that it lacks, such as a new task's head.

    The metadata names the base run, its hash, and the base weights that the adapter does not use.
    """
    file = Path(base) / WEIGHTS
    known = base and file.is_file()  # a resumed run does not need its base
    theirs = read_weights(file) if known else weights
    lost = " ".join(name for name in theirs if name not in weights)
    origin = {"base": base, "base hash": hash_tensors(theirs), "without": lost} if known else {}
    new = {name for name, t in weights.items() if name not in theirs or theirs[name].shape != t.shape}
    write_weights({name: t for name, t in weights.items() if name in new.union(trained)}, path, about=origin)


def merge_adapter(base: Path, adapter: Path) -> Tensors:
    """Return the weights of a run with the adapters of a file merged; refused if they belong to another run."""
    weights = read_weights(base / WEIGHTS)
    with opened_weights(adapter) as file:
        origin = file.metadata() or {}
    require(
        origin.get("base hash") == hash_tensors(weights),
        f"{adapter} was trained on another run than {base}; give that one: {origin.get('base', 'it is unknown')}",
    )
    for name in origin.get("without", "").split():
        del weights[name]
    parts = read_weights(adapter)
    weights |= {name: tensor for name, tensor in parts.items() if not name.endswith((A, B))}
    for name in parts:
        if name.endswith(A):
            matrix = name.removesuffix(A)
            weights[f"{matrix}.weight"] += SCALE * parts[matrix + B] @ parts[name]
    return weights


def replace_module(model: nn.Module, name: str, module: nn.Module) -> None:
    """Put a module in the place of the one that has this name, such as decoder.blocks.0.attention.query."""
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, module)
