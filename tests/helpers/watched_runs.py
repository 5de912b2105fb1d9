"""What tests of train/watching share: a CPU machine, a model for each built-in corpus, the metrics of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from clearhead.config import ModelConfig, Recipe, TrainConfig
from clearhead.device import Machine
from clearhead.train.watching.log import Log

CPU = Machine(torch.device("cpu"), torch.float32, False)
TASK_OF_CORPUS = {  # corpus -> task, model
    "phrasebook": ("translation", ModelConfig()),
    "stories": ("language", ModelConfig(family="decoder-only", position="learned", max_length=64)),
    "instructions": ("chat", ModelConfig(family="decoder-only")),
    "masked": ("masked", ModelConfig(family="encoder-only")),
    "reviews": ("classification", ModelConfig(family="encoder-only", head="classes")),
    "paraphrases": ("similarity", ModelConfig(family="encoder-only", head="embedding")),
}


def strict_json(text: str) -> Any:
    """Parse JSON and refuse NaN and Infinity, which only Python reads."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def metrics_of(run: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind in metrics.jsonl."""
    lines = [strict_json(line) for line in (run / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [line for line in lines if line["kind"] == kind]


def log_of(run: Path | None = None, **train_settings: Any) -> Log:
    """The log of a model without data, with these settings of `train`."""
    settings = TrainConfig(samples=0, **train_settings)
    return Log(run, Recipe(model=ModelConfig(vocab=50), train=settings), CPU, 0, quiet=True)
