"""Encoders of `transformers`: BERT, RoBERTa, DistilBERT; also MiniLM, which is a BERT."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from clearhead.config import ModelConfig, require
from clearhead.exchange.architecture import PLAIN_ACTIVATIONS, Architecture, Key, Stored, block
from clearhead.exchange.source import Json
from clearhead.runs import Tensors
from clearhead.tasks import TASKS

POOLING = "sentence_pooling"  # the pooling of sentence-transformers, added to config.json by the importer
HEADS: dict[str, dict[str, Any]] = {  # further settings, by model.head
    "vocabulary": {"head": "vocabulary", "head_dense": True, "head_bias": True},
    "classes": {"head": "classes", "head_dense": True, "head_bias": True, "pool": "first"},
    "embedding": {"head": "embedding"},
}


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


BERT_BLOCK: dict[str, str | Stored] = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.out": "attention.output.dense",
    "attention_add_norm.norm": "attention.output.LayerNorm",
    "feed_forward.up": "intermediate.dense",
    "feed_forward.down": "output.dense",
    "feed_forward_add_norm.norm": "output.LayerNorm",
}
ENCODER_FIXED = {
    "family": "encoder-only",
    "norm": "layer",
    "norm_order": "post",
    "position": "learned",
    "bias": True,
    "scale_embedding": False,
    "embedding_norm": True,
}
BERT_KEYS = {
    "vocab": Key("vocab_size"),
    "d_model": Key("hidden_size"),
    "d_ff": Key("intermediate_size"),
    "layers": Key("num_hidden_layers"),
    "heads": Key("num_attention_heads"),
    "max_length": Key("max_position_embeddings", 512),
    "norm_epsilon": Key("layer_norm_eps", 1e-12),
    "activation": Key("hidden_act", "gelu", PLAIN_ACTIVATIONS),
    "dropout": Key("hidden_dropout_prob", 0.1),
    "attention_dropout": Key("attention_probs_dropout_prob", 0.1),
    "segments": Key("type_vocab_size", 2),
    "tied": Key("tie_word_embeddings", True, {True: "output", False: "none"}),
}


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


BERT = Architecture(
    model_type="bert",
    tasks={
        "BertForMaskedLM": "masked",
        "BertForPreTraining": "masked",
        "BertForSequenceClassification": "classification",
        "BertModel": "similarity",
    },
    keys=BERT_KEYS,
    fixed=ENCODER_FIXED,
    by_head=HEADS,
    names={
        "encoder.embedding": "bert.embeddings.word_embeddings",
        "encoder.position.table": "bert.embeddings.position_embeddings",
        "encoder.segment": "bert.embeddings.token_type_embeddings",
        "encoder.embedding_norm": "bert.embeddings.LayerNorm",
        "head.dense": "bert.pooler.dense",
        **block("encoder", "bert.encoder.layer.{i}", BERT_BLOCK),
    },
    heads={
        "vocabulary": {
            "head.dense": "cls.predictions.transform.dense",
            "head.norm": "cls.predictions.transform.LayerNorm",
            "head.project.weight": "cls.predictions.decoder.weight",
            "head.project.bias": "cls.predictions.bias",
        },
        "classes": {"head.project": "classifier"},
    },
    prefix="bert.",
    unused=(r"position_ids$", r"pooler\.", r"^cls\.seq_relationship\.", r"^cls\.predictions\.decoder\."),
    required={"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False},
    read_more=read_head,
    write_more=write_head,
    complete=with_segment,
)


def read_roberta(config: Json, task: str) -> dict[str, Any]:
    """The length without the first two rows of the position table, since positions count from 2."""
    require(
        config.get("hidden_act", "gelu") == "gelu", "hidden_act: a RoBERTa other than with gelu cannot be expressed"
    )
    require(config.get("pad_token_id", 1) == 1, "pad_token_id: positions of RoBERTa count from 2 with pad_token_id = 1")
    return {**read_head(config, task), "max_length": config["max_position_embeddings"] - 2}


def write_roberta(config: ModelConfig, task: str) -> dict[str, Any]:
    """The same for config.json."""
    return {**write_head(config, task), "max_position_embeddings": config.max_length + 2}


ROBERTA = replace(
    BERT,
    model_type="roberta",
    tasks={
        "RobertaForMaskedLM": "masked",
        "RobertaForSequenceClassification": "classification",
        "RobertaModel": "similarity",
    },
    keys={setting: key for setting, key in BERT_KEYS.items() if setting != "max_length"},
    names={
        "encoder.embedding": "roberta.embeddings.word_embeddings",
        "encoder.position.table": Stored("roberta.embeddings.position_embeddings", skipped=2),
        "encoder.segment": "roberta.embeddings.token_type_embeddings",
        "encoder.embedding_norm": "roberta.embeddings.LayerNorm",
        "head.dense": "roberta.pooler.dense",
        **block("encoder", "roberta.encoder.layer.{i}", BERT_BLOCK),
    },
    heads={
        "vocabulary": {
            "head.dense": "lm_head.dense",
            "head.norm": "lm_head.layer_norm",
            "head.project.weight": "lm_head.decoder.weight",
            "head.project.bias": "lm_head.bias",
        },
        "classes": {"head.dense": "classifier.dense", "head.project": "classifier.out_proj"},
    },
    prefix="roberta.",
    unused=(r"position_ids$", r"pooler\.", r"^lm_head\.decoder\."),
    read_more=read_roberta,
    write_more=write_roberta,
)
XLM_ROBERTA = replace(
    ROBERTA,
    model_type="xlm-roberta",
    tasks={name.replace("Roberta", "XLMRoberta"): task for name, task in ROBERTA.tasks.items()},
)
DISTILBERT = replace(
    BERT,
    model_type="distilbert",
    tasks={
        "DistilBertForMaskedLM": "masked",
        "DistilBertForSequenceClassification": "classification",
        "DistilBertModel": "similarity",
    },
    keys={
        "vocab": Key("vocab_size"),
        "d_model": Key("dim"),
        "d_ff": Key("hidden_dim"),
        "layers": Key("n_layers"),
        "heads": Key("n_heads"),
        "max_length": Key("max_position_embeddings", 512),
        "activation": Key("activation", "gelu", PLAIN_ACTIVATIONS),
        "dropout": Key("dropout", 0.1),
        "attention_dropout": Key("attention_dropout", 0.1),
        "tied": Key("tie_word_embeddings", True, {True: "output", False: "none"}),
    },
    fixed=ENCODER_FIXED | {"norm_epsilon": 1e-12, "segments": 0},
    by_head=HEADS | {"classes": HEADS["classes"] | {"head_activation": "relu"}},
    names={
        "encoder.embedding": "distilbert.embeddings.word_embeddings",
        "encoder.position.table": "distilbert.embeddings.position_embeddings",
        "encoder.embedding_norm": "distilbert.embeddings.LayerNorm",
        **block(
            "encoder",
            "distilbert.transformer.layer.{i}",
            {
                "attention.query": "attention.q_lin",
                "attention.key": "attention.k_lin",
                "attention.value": "attention.v_lin",
                "attention.out": "attention.out_lin",
                "attention_add_norm.norm": "sa_layer_norm",
                "feed_forward.up": "ffn.lin1",
                "feed_forward.down": "ffn.lin2",
                "feed_forward_add_norm.norm": "output_layer_norm",
            },
        ),
    },
    heads={
        "vocabulary": {
            "head.dense": "vocab_transform",
            "head.norm": "vocab_layer_norm",
            "head.project": "vocab_projector",
        },
        "classes": {"head.dense": "pre_classifier", "head.project": "classifier"},
    },
    prefix="distilbert.",
    unused=(r"position_ids$", r"^vocab_projector\.weight$"),
    required={},
    complete=with_bias,
)
ENCODERS = (BERT, DISTILBERT, ROBERTA, XLM_ROBERTA)
