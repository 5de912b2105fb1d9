"""Folders of a tiny Llama in the format of `transformers`, written without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tiny_runs import tokenizers

SETTINGS: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 300,
    "tie_word_embeddings": True,
}


def folder_with(folder: Path, **settings: Any) -> Path:
    """A Llama of one block whose weights are all 0."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SETTINGS | settings))
    tokenizers().save(folder)
    block = "model.layers.0."
    shapes = {"model.embed_tokens": (300, 16), "model.norm": (16,)}
    shapes |= {f"{block}self_attn.{name}_proj": (16, 16) for name in "qkvo"}
    shapes |= {f"{block}mlp.{name}_proj": (24, 16) for name in ("gate", "up")} | {f"{block}mlp.down_proj": (16, 24)}
    shapes |= {f"{block}{name}_layernorm": (16,) for name in ("input", "post_attention")}
    save_file({f"{name}.weight": torch.zeros(shape) for name, shape in shapes.items()}, folder / "model.safetensors")
    return folder
