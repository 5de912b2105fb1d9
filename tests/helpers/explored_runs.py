"""Tiny untrained run folders with weights, snapshots and metrics, for tests of the explorer."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch

from clearhead.inspect.web.explorer import Explorer
from clearhead.recipes import write_recipe
from clearhead.runs import Run, open_run, write_weights
from tiny_models import shake
from tiny_runs import SENTENCES, TEXT, tiny_run

STEPS = (0, 7, 20)
WEIGHTS = "encoder.blocks.1.attention.weights"
KINDS: dict[str, dict[str, Any]] = {
    "translator": {"family": "encoder-decoder"},
    "writer": {
        "family": "decoder-only",
        "position": "rotary",
        "norm": "rms",
        "norm_order": "pre",
        "activation": "swiglu",
    },
    "classifier": {"family": "encoder-only", "head": "classes", "position": "learned", "norm_order": "pre"},
    "guesser": {"family": "encoder-only", "head_dense": True, "activation": "gelu"},
    "embedder": {"family": "encoder-only", "head": "embedding", "position": "none"},
}


def folder_of(kind: str, seed: int = 0) -> Path:
    """A run folder of this kind; the seed decides its weights."""
    return make_folder(kind, seed)


@cache  # tells calls apart by how their arguments are written, so there is only one way to call it
def make_folder(kind: str, seed: int) -> Path:
    return write_folder(kind, seed, KINDS[kind])


def write_folder(kind: str, seed: int, settings: dict[str, Any]) -> Path:
    """A new run folder of a model with these settings."""
    torch.manual_seed(seed)
    run = tiny_run(**settings)
    folder = Path(mkdtemp(prefix=f"explored-{kind}-"))
    write_recipe(run.recipe, folder / "run.toml")
    run.tokenizers.save(folder)
    if run.labels:
        (folder / "labels.json").write_text(json.dumps(run.labels))
    for step in STEPS:
        write_weights(dict(run.model.named_parameters()), snapshot_path(folder, step), torch.float16)
        shake(run.model)
    write_weights(dict(run.model.named_parameters()), folder / "model.safetensors")
    rows = [{"kind": "train", "step": step, "loss": 6 - step / 5} for step in range(1, 21)]
    rows += [{"kind": "valid", "step": 20, "loss": 2.1}, {"kind": "sample", "step": 20, "source": SENTENCES[0]}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def snapshot_path(folder: Path, step: int) -> Path:
    return folder / "snapshots" / f"step-{step:08d}.safetensors"


@cache
def opened(kind: str) -> Run:
    """The same run opened by the library, to compare the numbers of the page with."""
    return open_run(folder_of(kind))


def begin(explorer: Explorer, text: str = TEXT, **query: str) -> dict[str, Any]:
    found = explorer.answer("trace", {"run": "0", "text": text, **query})
    assert isinstance(found, dict)
    return found
