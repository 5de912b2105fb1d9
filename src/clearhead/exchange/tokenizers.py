"""Tokenizers of `transformers`: which of their tokens begins, ends and pads a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers

from clearhead.config import ModelConfig, require
from clearhead.exchange.sentencepiece import marian_backend, read_sentencepiece
from clearhead.exchange.source import read_json
from clearhead.text.tokenizer import Tokenizer, Tokenizers
from clearhead.text.tokenizer_formats import CONFIG_FILE, read_backend, read_special_tokens

Json = dict[str, Any]


def read_tokenizers(folder: Path, config: Json, model: ModelConfig) -> Tokenizers:
    """The tokenizers of a model, with the special tokens that its settings name."""
    known = read_special_tokens(folder)
    backends = read_backends(folder)
    sides = [Tokenizer(each, special_tokens(Tokenizer(each, known), config, model)) for each in backends]
    for side in sides:
        require(
            side.vocab <= model.vocab,
            f"the tokenizer of {folder} has {side.vocab:,} ids, and the model {model.vocab:,} embeddings (vocab_size)",
        )
    return Tokenizers(sides[0], sides[-1])


def read_backends(folder: Path) -> list[tokenizers.Tokenizer]:
    """One tokenizer, or those of source and target."""
    if (folder / "tokenizer.json").is_file() or not (folder / "source.spm").is_file():
        return [read_backend(folder)]
    ids = read_json(folder / "vocab.json")
    require(all(type(number) is int for number in ids.values()), f"{folder / 'vocab.json'} is damaged")
    targets = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    require(not targets, f"vocab.json: a model of several target languages ({targets[:2]}) cannot be expressed here")
    files = [folder / f"{side}.spm" for side in ("source", "target")]
    return [marian_backend(read_sentencepiece(file), ids) for file in files]


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
