"""Tiny random models of `transformers`, saved with a tokenizer of ours, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tiny_runs import tokenizers

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install 'clearhead[dev]'")
VOCAB = 300
PRECISION = 1e-5
LLAMA = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
BERT = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
DISTILBERT = {"vocab_size": VOCAB, "dim": 32, "hidden_dim": 40, "n_layers": 2, "n_heads": 4}
DISTILBERT |= {"max_position_embeddings": 64, "pad_token_id": 0}
ROBERTA = BERT | {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1}
GPT2 = {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0}
LLAMA3_ROPE |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 20}
LABELS = {"id2label": {0: "bad", 1: "good", 2: "so so"}, "label2id": {"bad": 0, "good": 1, "so so": 2}}

DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {  # name -> class of the settings, of the model, the settings
    "llama": ("LlamaConfig", "LlamaForCausalLM", LLAMA),
    "llama tied": ("LlamaConfig", "LlamaForCausalLM", LLAMA | {"tie_word_embeddings": True}),
    "llama 3.1": ("LlamaConfig", "LlamaForCausalLM", LLAMA | {"rope_parameters": LLAMA3_ROPE, "head_dim": 12}),
    "llama multi-query": ("LlamaConfig", "LlamaForCausalLM", LLAMA | {"num_key_value_heads": 1}),
    "mistral": ("MistralConfig", "MistralForCausalLM", LLAMA | {"sliding_window": None}),
    "mistral window": ("MistralConfig", "MistralForCausalLM", LLAMA | {"sliding_window": 7}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", LLAMA),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", LLAMA | {"head_dim": 16}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT2),
    "gpt2 gelu": ("GPT2Config", "GPT2LMHeadModel", GPT2 | {"activation_function": "gelu", "n_inner": 24}),
}
ENCODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert masked": ("BertConfig", "BertForMaskedLM", BERT),
    "bert classes": ("BertConfig", "BertForSequenceClassification", BERT | LABELS),
    "bert vector": ("BertConfig", "BertModel", BERT),
    "distilbert masked": ("DistilBertConfig", "DistilBertForMaskedLM", DISTILBERT),
    "distilbert classes": ("DistilBertConfig", "DistilBertForSequenceClassification", DISTILBERT | LABELS),
    "roberta masked": ("RobertaConfig", "RobertaForMaskedLM", ROBERTA),
    "roberta classes": ("RobertaConfig", "RobertaForSequenceClassification", ROBERTA | LABELS),
    "xlm-roberta masked": ("XLMRobertaConfig", "XLMRobertaForMaskedLM", ROBERTA),
}

MARIAN = {"vocab_size": VOCAB, "d_model": 32, "max_position_embeddings": 64, "activation_function": "swish"}
MARIAN |= {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (("ffn_dim", 40), ("layers", 2))}
MARIAN |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "scale_embedding": True, "encoder_layers": 3}
MARIAN |= {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0, "forced_eos_token_id": None}
PLAIN = {"activation_function": "relu", "scale_embedding": False}
TRANSLATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "marian": ("MarianConfig", "MarianMTModel", MARIAN),
    "marian relu": ("MarianConfig", "MarianMTModel", MARIAN | PLAIN),
}


def build(kind: tuple[str, str, dict[str, Any]]) -> Any:
    """A model of `transformers` whose biases are not 0 and whose gains are not 1."""
    config, model, settings = kind
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
        if hasattr(made, "final_logits_bias"):
            made.final_logits_bias += torch.randn_like(made.final_logits_bias)
            rebuild_positions(made)  # these are not learned
    return made


def rebuild_positions(marian: Any) -> None:
    for stack in (marian.model.encoder, marian.model.decoder):
        fresh = type(marian)(marian.config).model.encoder.embed_positions.weight
        stack.embed_positions.weight.data.copy_(fresh)


def save(model: Any, folder: Path, **options: Any) -> Path:
    """Save a model with our tokenizer beside it."""
    model.save_pretrained(folder, **options)
    tokenizers().save(folder)
    return folder


def random_ids(*shape: int) -> Tensor:
    """Ids of ordinary tokens, not of special ones."""
    return torch.randint(10, VOCAB, shape)


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=PRECISION, atol=PRECISION * max(1.0, theirs.abs().max().item()))


def each(models: dict[str, Any]) -> Callable[..., Any]:
    return pytest.mark.parametrize("kind", models.values(), ids=models)
