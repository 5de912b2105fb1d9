"""Language models of `transformers`: Llama and its relatives, GPT-2."""

from __future__ import annotations

from typing import Any

from clearhead.config import ModelConfig, require
from clearhead.exchange.architecture import Architecture, Json, Key, block


def read_rotary(config: Json) -> dict[str, Any]:
    """The rotary positions: `rope_parameters`, or the settings that were called otherwise before transformers 5."""
    scaling: Json = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    require(kind == "default", f"rope_scaling of type {kind!r} cannot be expressed here")
    return {"rotary_base": float(scaling.get("rope_theta") or config.get("rope_theta") or 10_000.0)}


def write_rotary(config: ModelConfig) -> dict[str, Any]:
    """The same for config.json, under both names."""
    return {
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
    }


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
    read_more=read_rotary,
    write_more=write_rotary,
)
DECODERS = (LLAMA,)
