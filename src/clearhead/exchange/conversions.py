"""What the tables in architectures.toml cannot express: settings and tensors that depend on others.

`read_...` computes settings of ours from config.json, `write_...` is the way back, `with_...` adds tensors that we do
not have.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from clearhead.config import ModelConfig, require
from clearhead.exchange.source import Json
from clearhead.runs import Tensors
from clearhead.tasks import TASKS

POOLING = "sentence_pooling"  # the pooling of sentence-transformers, added to config.json by the importer

# --- Llama and its relatives, GPT-2 -----------------------------------------------------------------------------------


def read_llama(config: Json, _task: str) -> dict[str, Any]:
    """Rotary positions and the head size; config.json has had several names for both."""
    scaling: Json = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    require(kind in ("default", "linear", "llama3"), f"rope_scaling of type {kind!r} cannot be expressed here")
    turns = (scaling.get("low_freq_factor", 1), scaling.get("high_freq_factor", 4))
    require(
        turns == (1, 4), f"rope_scaling with low and high_freq_factor = {turns} cannot be expressed here: (1, 4) can"
    )
    size = config.get("head_dim") or (128 if config["model_type"] == "qwen3" else 0)
    usual = size * config["num_attention_heads"] == config["hidden_size"]
    return {
        "rotary_base": float(scaling.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        "rotary_factor": 1.0 if kind == "default" else float(scaling.get("factor", 1.0)),
        "rotary_length": int(scaling["original_max_position_embeddings"]) if kind == "llama3" else 0,
        "head_channels": 0 if usual else size,
        "window": read_window(config),
    }


def read_window(config: Json) -> int:
    """The attention window: 0 if it is switched off, or not shorter than the longest text."""
    window = (
        config.get("sliding_window") if config.get("use_sliding_window", config["model_type"] == "mistral") else None
    )
    if window is None or window >= config.get("max_position_embeddings", 2048):
        return 0
    later = config.get("max_window_layers") or 0
    require(
        later == 0, f"max_window_layers = {later} cannot be expressed here: all blocks have the same sliding_window"
    )
    return int(window)


def write_llama(config: ModelConfig, _task: str) -> dict[str, Any]:
    """Write rotary positions and the head size to config.json."""
    scaling: Json = {"rope_type": "default", "rope_theta": config.rotary_base}
    if config.rotary_factor != 1:
        scaling |= {"rope_type": "linear", "factor": config.rotary_factor}
    if config.rotary_length:
        length = config.rotary_length
        scaling |= {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        scaling |= {"original_max_position_embeddings": length}
    head = {"head_dim": config.head_size, "num_attention_heads": config.heads, "hidden_size": config.d_model}
    return {"rope_theta": config.rotary_base, "rope_parameters": scaling, **head}


def write_mistral(config: ModelConfig, task: str) -> dict[str, Any]:
    """Write the settings of Llama, and the attention window."""
    return write_llama(config, task) | {"sliding_window": config.window or None}


def read_gpt2(config: Json, _task: str) -> dict[str, Any]:
    """The width of the feed-forward network: four times that of the model, unless it is given."""
    return {"d_ff": config.get("n_inner") or 4 * config["n_embd"]}


def write_gpt2(config: ModelConfig, _task: str) -> dict[str, Any]:
    """Write the width of the feed-forward network and the dropout of embeddings to config.json."""
    return {"n_inner": config.d_ff, "embd_pdrop": config.dropout, "n_embd": config.d_model}


# --- BERT, RoBERTa, DistilBERT ----------------------------------------------------------------------------------------


def read_head(config: Json, task: str) -> dict[str, Any]:
    """The number of classes, or the pooling."""
    head = TASKS[task].head
    if head == "classes":
        require(
            config.get("problem_type") in (None, "single_label_classification"),
            f"problem_type = {config.get('problem_type')!r} cannot be expressed here: a text has one class",
        )
        return {"classes": len(config.get("id2label") or {}) or config.get("num_labels") or 2}
    if head != "embedding":
        return {}
    pool = config.get(POOLING)
    return {"pool": pool or "first", "head_dense": pool is None and config["model_type"] != "distilbert"}


def write_head(config: ModelConfig, task: str) -> dict[str, Any]:
    """The number of segments (BERT needs at least one) and the pooling."""
    pooling = {POOLING: None if config.head_dense else config.pool} if TASKS[task].head == "embedding" else {}
    return {"type_vocab_size": config.segments or 1, **pooling}


def with_bias(tensors: Tensors, config: ModelConfig) -> Tensors:
    """The logits of classes always have a bias: a model without one gets zeros."""
    if config.head == "classes" and not config.head_bias:
        weight = next(name for name in tensors if re.fullmatch(r"classifier(\.out_proj)?\.weight", name))
        tensors[weight.replace("weight", "bias")] = tensors[weight].new_zeros(config.classes)
    return tensors


def with_segment(tensors: Tensors, config: ModelConfig) -> Tensors:
    """BERT always has segments: a model without them gets one of zeros."""
    tensors = with_bias(tensors, config)
    if not config.segments:
        word = next(name for name in tensors if name.endswith("embeddings.word_embeddings.weight"))
        name = word.replace("word_embeddings", "token_type_embeddings")
        tensors[name] = tensors[word].new_zeros(1, config.d_model)
    return tensors


def read_roberta(config: Json, task: str) -> dict[str, Any]:
    """The length without the first two rows of the position table, since positions count from 2."""
    require(
        config.get("hidden_act", "gelu") == "gelu", "hidden_act: a RoBERTa other than with gelu cannot be expressed"
    )
    require(config.get("pad_token_id", 1) == 1, "pad_token_id: positions of RoBERTa count from 2 with pad_token_id = 1")
    return {**read_head(config, task), "max_length": config["max_position_embeddings"] - 2}


def write_roberta(config: ModelConfig, task: str) -> dict[str, Any]:
    """Write the settings that `read_roberta` reads to config.json."""
    return {**write_head(config, task), "max_position_embeddings": config.max_length + 2}


# --- Marian -----------------------------------------------------------------------------------------------------------


def read_marian(config: Json, _task: str) -> dict[str, Any]:
    """No settings; refuse a model whose encoder and decoder differ in settings that they share here."""
    for name in ("ffn_dim", "attention_heads"):
        encoder = config.get(f"encoder_{name}")
        decoder = config.get(f"decoder_{name}")
        require(
            encoder == decoder,
            f"encoder_{name} = {encoder} and decoder_{name} = {decoder} cannot be expressed here: they must be equal",
        )
    vocab = config.get("decoder_vocab_size") or config["vocab_size"]
    require(
        vocab == config["vocab_size"],
        f"decoder_vocab_size = {vocab} cannot be expressed here: it must be vocab_size = {config['vocab_size']}",
    )
    return {}


def write_marian(config: ModelConfig, _task: str) -> dict[str, Any]:
    """The settings that encoder and decoder share here, and constants that `transformers` needs."""
    return {
        "encoder_ffn_dim": config.d_ff,
        "encoder_attention_heads": config.heads,
        "decoder_vocab_size": config.vocab,
        "is_encoder_decoder": True,
        "static_position_embeddings": True,
    }


def with_logits_bias(tensors: Tensors, config: ModelConfig) -> Tensors:
    """The bias of the logits as a row; a model without one gets zeros."""
    bias = tensors.get("final_logits_bias", torch.zeros(config.vocab))
    tensors["final_logits_bias"] = bias.view(1, -1)
    return tensors
