"""Translators of `transformers`: Marian, the architecture of the paper."""

from __future__ import annotations

from typing import Any

import torch

from clearhead.config import ModelConfig, require
from clearhead.exchange.architecture import PLAIN_ACTIVATIONS, Architecture, Key, block
from clearhead.exchange.source import Json
from clearhead.runs import Tensors

SIDES = ("ffn_dim", "attention_heads")  # settings that encoder and decoder each have, and share here


def read_marian(config: Json, _task: str) -> dict[str, Any]:
    """No settings; refuse a model whose encoder and decoder differ in settings that they share here."""
    for name in SIDES:
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


SELF_ATTENTION = {
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.out": "self_attn.out_proj",
    "attention_add_norm.norm": "self_attn_layer_norm",
}
CROSS_ATTENTION = {
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.out": "encoder_attn.out_proj",
    "cross_attention_add_norm.norm": "encoder_attn_layer_norm",
}
FEED_FORWARD = {
    "feed_forward.up": "fc1",
    "feed_forward.down": "fc2",
    "feed_forward_add_norm.norm": "final_layer_norm",
}
MARIAN = Architecture(
    model_type="marian",
    tasks={"MarianMTModel": "translation"},
    keys={
        "vocab": Key("vocab_size"),
        "d_model": Key("d_model"),
        "d_ff": Key("decoder_ffn_dim"),
        "layers": Key("decoder_layers"),
        "encoder_layers": Key("encoder_layers"),
        "heads": Key("decoder_attention_heads"),
        "max_length": Key("max_position_embeddings", 1024),
        "activation": Key("activation_function", "gelu", PLAIN_ACTIVATIONS),
        "scale_embedding": Key("scale_embedding", False),
        "dropout": Key("dropout", 0.1),
        "attention_dropout": Key("attention_dropout", 0.0),
        "tied": Key("tie_word_embeddings", True, {True: "all"}),
    },
    fixed={
        "family": "encoder-decoder",
        "norm": "layer",
        "norm_order": "post",
        "norm_epsilon": 1e-5,
        "position": "sinusoidal",
        "bias": True,
        "head_bias": True,
    },
    names={
        "encoder.embedding": "model.shared",  # that of the decoder, and of the logits
        "head.project.bias": "final_logits_bias",
        **block("encoder", "model.encoder.layers.{i}", {**SELF_ATTENTION, **FEED_FORWARD}),
        **block("decoder", "model.decoder.layers.{i}", {**SELF_ATTENTION, **CROSS_ATTENTION, **FEED_FORWARD}),
    },
    prefix="model.",
    unused=(r"embed_positions\.weight$", r"embed_tokens\.weight$", r"^lm_head\.weight$"),
    required={"share_encoder_decoder_embeddings": True, "normalize_before": False, "normalize_embedding": False},
    read_more=read_marian,
    write_more=write_marian,
    complete=with_logits_bias,
    halves=True,
)
TRANSLATORS = (MARIAN,)
