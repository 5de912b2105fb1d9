"""Language models of `transformers`: Llama and its relatives, GPT-2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.config import ModelConfig, require
from clearhead.exchange.architecture import PLAIN_ACTIVATIONS, Architecture, Key, Stored, block
from clearhead.exchange.source import Json


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
    """The same for config.json."""
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
    """The same with the window."""
    return write_llama(config, task) | {"sliding_window": config.window or None}


LLAMA_KEYS = {
    "vocab": Key("vocab_size"),
    "d_model": Key("hidden_size"),
    "d_ff": Key("intermediate_size"),
    "layers": Key("num_hidden_layers"),
    "heads": Key("num_attention_heads"),
    "kv_heads": Key("num_key_value_heads", 0),
    "norm_epsilon": Key("rms_norm_eps", 1e-6),
    "max_length": Key("max_position_embeddings", 2048),
    "activation": Key("hidden_act", "silu", {"silu": "swiglu"}),
    "attention_dropout": Key("attention_dropout", 0.0),
    "tied": Key("tie_word_embeddings", False, {True: "output", False: "none"}),
}
LLAMA_FIXED = {
    "family": "decoder-only",
    "norm": "rms",
    "norm_order": "pre",
    "position": "rotary",
    "bias": False,
    "qkv_bias": False,
    "query_key_norm": False,
    "window": 0,
    "dropout": 0.0,
    "scale_embedding": False,
}
LLAMA_NAMES = {
    "decoder.embedding": "model.embed_tokens",
    "decoder.norm": "model.norm",
    "head.project": "lm_head",
    **block(
        "decoder",
        "model.layers.{i}",
        {
            "attention.query": "self_attn.q_proj",
            "attention.key": "self_attn.k_proj",
            "attention.value": "self_attn.v_proj",
            "attention.out": "self_attn.o_proj",
            "attention_add_norm.norm": "input_layernorm",
            "feed_forward.gate": "mlp.gate_proj",
            "feed_forward.up": "mlp.up_proj",
            "feed_forward.down": "mlp.down_proj",
            "feed_forward_add_norm.norm": "post_attention_layernorm",
        },
    ),
}
LLAMA = Architecture(
    model_type="llama",
    tasks={"LlamaForCausalLM": "language"},
    keys=LLAMA_KEYS,
    fixed=LLAMA_FIXED,
    names=LLAMA_NAMES,
    prefix="model.",
    unused=(r"rotary_emb\.inv_freq$", r"^lm_head\.weight$"),
    required={"attention_bias": False, "mlp_bias": False, "pretraining_tp": 1},
    read_more=read_llama,
    write_more=write_llama,
)
MISTRAL = replace(
    LLAMA,
    model_type="mistral",
    tasks={"MistralForCausalLM": "language"},
    fixed={setting: value for setting, value in LLAMA_FIXED.items() if setting != "window"},
    required={},
    write_more=write_mistral,
)
QWEN2 = replace(
    LLAMA,
    model_type="qwen2",
    tasks={"Qwen2ForCausalLM": "language"},
    fixed=LLAMA_FIXED | {"qkv_bias": True},
    required={},
)
QWEN3 = replace(
    LLAMA,
    model_type="qwen3",
    tasks={"Qwen3ForCausalLM": "language"},
    fixed=LLAMA_FIXED | {"query_key_norm": True},
    required={"attention_bias": False},
    names=LLAMA_NAMES
    | block(
        "decoder",
        "model.layers.{i}",
        {"attention.query_norm": "self_attn.q_norm", "attention.key_norm": "self_attn.k_norm"},
    ),
)


def read_gpt2(config: Json, _task: str) -> dict[str, Any]:
    """The width of the feed-forward network: four times that of the model, unless it is given."""
    return {"d_ff": config.get("n_inner") or 4 * config["n_embd"]}


def write_gpt2(config: ModelConfig, _task: str) -> dict[str, Any]:
    """The same for config.json, and the dropout of embeddings."""
    return {"n_inner": config.d_ff, "embd_pdrop": config.dropout, "n_embd": config.d_model}


GPT2 = Architecture(
    model_type="gpt2",
    tasks={"GPT2LMHeadModel": "language"},
    keys={
        "vocab": Key("vocab_size"),
        "d_model": Key("n_embd"),
        "layers": Key("n_layer"),
        "heads": Key("n_head"),
        "max_length": Key("n_positions", 1024),
        "norm_epsilon": Key("layer_norm_epsilon", 1e-5),
        "activation": Key("activation_function", "gelu_new", PLAIN_ACTIVATIONS),
        "dropout": Key("resid_pdrop", 0.1),
        "attention_dropout": Key("attn_pdrop", 0.1),
        "tied": Key("tie_word_embeddings", True, {True: "output", False: "none"}),
    },
    fixed={
        "family": "decoder-only",
        "norm": "layer",
        "norm_order": "pre",
        "position": "learned",
        "bias": True,
        "scale_embedding": False,
    },
    names={
        "decoder.embedding": "transformer.wte",
        "decoder.position.table": "transformer.wpe",
        "decoder.norm": "transformer.ln_f",
        "head.project": "lm_head",
        **block(
            "decoder",
            "transformer.h.{i}",
            {
                "attention.query": Stored("attn.c_attn", transposed=True, part=0, parts=3),
                "attention.key": Stored("attn.c_attn", transposed=True, part=1, parts=3),
                "attention.value": Stored("attn.c_attn", transposed=True, part=2, parts=3),
                "attention.out": Stored("attn.c_proj", transposed=True),
                "attention_add_norm.norm": "ln_1",
                "feed_forward.up": Stored("mlp.c_fc", transposed=True),
                "feed_forward.down": Stored("mlp.c_proj", transposed=True),
                "feed_forward_add_norm.norm": "ln_2",
            },
        ),
    },
    prefix="transformer.",
    unused=(r"\.attn\.(masked_)?bias$", r"^lm_head\.weight$"),
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
    },
    read_more=read_gpt2,
    write_more=write_gpt2,
)
DECODERS = (LLAMA, QWEN2, QWEN3, MISTRAL, GPT2)
