"""Tiny untrained runs of all families, with a trained tokenizer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from clearhead.config import DataConfig, Family, ModelConfig, Recipe, TokenizerConfig
from clearhead.model import build_model
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizers, train_tokenizer
from tiny_models import TINY, shake

SENTENCES = ("the red car is fast", "the dog sees the red house", "a cat runs", "la voiture rouge est rapide")
TEXT = "the red car is fast"
LABELS = ("bad", "good", "so so")


@cache
def tokenizers() -> Tokenizers:
    both = train_tokenizer(TokenizerConfig(vocab=300), SENTENCES * 20, progress=False)
    return Tokenizers(both, both)


def tiny_run(
    family: Family = "encoder-decoder",
    config: ModelConfig = TINY,
    dtype: torch.dtype = torch.float32,
    task: str = "",
    wider: int = 0,  # embedding rows beyond the vocabulary of the tokenizer
    **changes: Any,
) -> Run:
    """A run with random weights, where no bias is 0 and no gain is 1."""
    head = changes.get("head", config.head)
    changes |= {"family": family, "vocab": tokenizers().target.vocab + wider}
    changes |= {"classes": len(LABELS)} if head == "classes" else {}
    model_config = replace(config, **changes)
    task = task or next(name for name, each in TASKS.items() if (each.family, each.head) == (family, head))
    recipe = Recipe(model=model_config, data=DataConfig(task=task, corpus="phrasebook"))
    model = build_model(model_config).to(dtype).eval()
    shake(model)
    labels = LABELS if head == "classes" else ()
    return Run(Path("nowhere"), recipe, tokenizers(), labels, model.requires_grad_(False))
