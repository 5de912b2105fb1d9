"""All exercises, in the order in which they build on each other."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from clearhead.config import UserError, suggest

if TYPE_CHECKING:
    from clearhead.learn.exercise import Exercise

OWN = {  # each exercise, and where the project's own implementation is, below src/clearhead
    "bpe": "text/bpe.py, merge",
    "sinusoids": "model/stack.py, SinusoidalPosition",
    "rotary": "model/attention.py, rotate",
    "attention": "model/attention.py, Attention.weigh and masked_softmax",
    "causal-mask": "model/attention.py, causal_mask; model/cache.py, past_mask",
    "heads": "model/attention.py, Attention.split and merge_heads",
    "layer-norm": "model/norm.py, LayerNorm",
    "feed-forward": "model/block.py, FeedForward",
    "block": "model/block.py, AddNorm and Block",
    "cross-attention": "model/attention.py, Attention; model/block.py, Block.attend_to_memory",
    "teacher-forcing": "data/batches.py, TokenColumn.shifted_slices",
    "label-smoothing": "train/loss.py, cross_entropy",
    "noam": "train/schedule.py, factor",
    "greedy": "decode/search.py, greedy",
    "beam": "decode/beam.py, beam",
    "kv-cache": "model/cache.py, GrowingCache and State",
    "lora": "train/lora.py, LoRALinear and merge_lora",
    "encoder-decoder": "model/families.py, EncoderDecoder",
}
NAMES = tuple(OWN)
EXERCISES = Path(__file__).parent / "exercises"


def find_name(given: str) -> str:
    """Return the name of an exercise as it is spelled; layer_norm and layer_norm.py mean layer-norm."""
    name = given.removesuffix(".py").replace("_", "-").lower()
    if name not in NAMES:
        raise UserError(f"there is no exercise {given!r}; {suggest(name, NAMES)}")
    return name


def load_exercise(name: str) -> Exercise:
    """Load the exercise of a name: its code from a Python file, its texts from a TOML file; it imports torch."""
    from clearhead.learn.exercise import Exercise, Mistake

    file = name.replace("-", "_")
    code = import_module(f"clearhead.learn.exercises.{file}")
    texts = tomllib.loads((EXERCISES / f"{file}.toml").read_text(encoding="utf8"))
    mistakes = [Mistake(**each) for each in texts.pop("mistakes")]
    return Exercise(name, code.REFERENCE, code.cases, code.swap, mistakes, **texts)
