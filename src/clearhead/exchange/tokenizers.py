"""Tokenizers of `transformers`: which of their tokens begins, ends and pads a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clearhead.config import ModelConfig, require
from clearhead.text.tokenizer import Tokenizer, Tokenizers
from clearhead.text.tokenizer_formats import CONFIG_FILE, read_backend, read_special_tokens

Json = dict[str, Any]


def read_tokenizers(folder: Path, config: Json, model: ModelConfig) -> Tokenizers:
    """The tokenizer of a model, with the special tokens that its settings name."""
    backend = read_backend(folder)
    both = Tokenizer(backend, special_tokens(Tokenizer(backend, read_special_tokens(folder)), config, model))
    require(
        both.vocab <= model.vocab,
        f"the tokenizer of {folder} has {both.vocab:,} ids, and the model {model.vocab:,} embeddings (vocab_size)",
    )
    return Tokenizers(both, both)


def special_tokens(known: Tokenizer, config: Json, model: ModelConfig) -> dict[str, str]:
    """The spelling of each special token; a model without one for padding takes its end, one without a start too."""
    tokens = {number: token for token, number in known.backend.get_vocab().items()}
    found = dict(known.special_tokens)

    def setting(name: str) -> list[str]:
        value = config.get(name)
        return [tokens[number] for number in (value if isinstance(value, list) else [value]) if number in tokens]

    ends = setting("eos_token_id")
    if ends and model.family != "encoder-only" and found.get("end") not in ends:
        found["end"] = ends[0]
    starts = setting("decoder_start_token_id") if model.family == "encoder-decoder" else setting("bos_token_id")
    if starts and model.family != "encoder-only" and (model.family == "encoder-decoder" or "start" not in found):
        found["start"] = starts[0]
    if pads := setting("pad_token_id"):
        found.setdefault("pad", pads[0])
    complete = Tokenizer(known.backend, found)
    require(complete.has("end"), f"eos_token_id: neither config.json nor {CONFIG_FILE} says which token ends a text")
    end = tokens[complete.end]
    return {"start": end, "pad": end} | {
        name: tokens[complete.special(name)]
        for name in ("start", "end", "pad", "unknown", "mask")
        if complete.has(name)
    }
