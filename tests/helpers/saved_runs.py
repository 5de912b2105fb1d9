"""Tiny untrained runs of every task, saved as run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clearhead.recipes import write_recipe
from clearhead.runs import Facts, Run, write_weights
from tiny_runs import tiny_run


def save(run: Run, folder: Path) -> Path:
    """Write a run folder as training does."""
    folder.mkdir(parents=True, exist_ok=True)
    write_recipe(run.recipe, folder / "run.toml")
    run.tokenizers.save(folder)
    Facts(run.labels, run.longest, run.one_sentence).write(folder / "facts.json")
    write_weights(dict(run.model.named_parameters()), folder / "model.safetensors")
    return folder


def save_all(folder: Path) -> dict[str, Path]:
    """Save a run for each task; task -> folder."""
    runs = {
        "translation": tiny_run(),
        "language": tiny_run("decoder-only", position="rotary"),
        "chat": tiny_run("decoder-only", task="chat", position="learned"),
        "masked": tiny_run("encoder-only"),
        "classification": tiny_run("encoder-only", head="classes"),
        "similarity": tiny_run("encoder-only", head="embedding"),
    }
    return {task: save(run, folder / task) for task, run in runs.items()}


def save_endless(folder: Path, **settings: Any) -> Path:
    """A run whose greedy text never ends: <end> is never the most likely token."""
    run = tiny_run("decoder-only", position="rotary", **settings)
    run.model.get_parameter("head.project.weight").data[run.tokenizers.target.end] = 0
    return save(run, folder)
