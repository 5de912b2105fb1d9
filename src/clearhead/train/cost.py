"""What a model costs: parameters, FLOPs, memory and training time, each with the arithmetic behind the number."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from clearhead.config import ModelConfig, require

FLOAT = 4  # bytes of a float32, in which weights, gradients and optimiser state are stored
OPERATORS = str.maketrans({"×": "*", "/": "//", "²": "**2", "[": "(", "]": ")"})  # of the tables -> of Python


@dataclass(frozen=True)
class Line:
    """One line of a table: a quantity and how it is computed."""

    what: str
    how: str  # the arithmetic in integers, such as 6 × [768 × 3,072 + 3,072]; a word explains a number: 64 (norms)

    @cached_property
    def value(self) -> int:
        """The number that the arithmetic gives."""
        without_words = re.sub(r" \([a-z]+\)|,", "", self.how)
        return int(eval(without_words.translate(OPERATORS), {"__builtins__": {}}))


@dataclass(frozen=True)
class BatchShape:
    """The size of a batch."""

    batch: int = 32  # sequences
    length: int = 128  # tokens per sequence (in an encoder-decoder, of source and target each)


class StackSize(NamedTuple):
    """The blocks of an encoder or a decoder."""

    name: str
    layers: int
    attentions: int = 1  # of each block: two with cross-attention


def total(lines: Iterable[Line]) -> int:
    """Return the sum of the values."""
    return sum(line.value for line in lines)


def stacks(config: ModelConfig) -> list[StackSize]:
    """Return the stacks of a family."""
    if config.family == "encoder-decoder":
        encoder = StackSize("encoder", config.encoder_layers or config.layers)
        return [encoder, StackSize("decoder", config.layers, attentions=2)]
    return [StackSize(config.family.removesuffix("-only"), config.layers)]


def kv_size(config: ModelConfig) -> int:
    """Return the width of all keys (or values) of one token: G × K."""
    return (config.kv_heads or config.heads) * config.head_size


# --- parameters -------------------------------------------------------------------------------------------------------


def matrix(rows: int, columns: int, bias: bool) -> str:
    """Return the parameters of a matrix with its bias."""
    return f"{rows:,} × {columns:,}" + (f" + {columns:,}" if bias else "")


def norm_size(config: ModelConfig, channels: int = 0) -> int:
    """Return the parameters of one norm of d_model or other channels: a gain, and in a LayerNorm with biases a bias."""
    return (channels or config.d_model) * (2 if config.norm == "layer" and config.bias else 1)


def attention_parameters(config: ModelConfig) -> str:
    """Return the parameters of one attention: full width for queries and output, G × K for keys and values."""
    bias = config.bias or config.qkv_bias
    query = matrix(config.d_model, config.query_size, bias)
    shared = matrix(config.d_model, kv_size(config), bias)
    out = matrix(config.query_size, config.d_model, config.bias)
    parts = Counter([query, shared, shared, out])
    how = " + ".join(f"{count} × ({part})" if count > 1 else part for part, count in parts.items())
    norms = 2 * norm_size(config, config.head_size)
    return how + (f" + {norms:,} (norms)" if config.query_key_norm else "")


def feed_forward_parameters(config: ModelConfig) -> str:
    """Return the parameters of one feed-forward layer: two matrices, with SwiGLU a third for the gate."""
    up = matrix(config.d_model, config.d_ff, config.bias)
    down = matrix(config.d_ff, config.d_model, config.bias)
    return f"2 × ({up}) + {down}" if config.activation == "swiglu" else f"{up} + {down}"


def stack_lines(config: ModelConfig, stack: StackSize) -> list[Line]:
    """Return the parameters of the blocks of one stack, by kind of sublayer."""
    name, layers, attentions = stack
    cross = attentions > 1
    last = " + 1" if config.norm_order == "pre" else ""
    attention = f"{layers} × {'2 × ' if cross else ''}[{attention_parameters(config)}]"
    return [
        Line(f"{name} attention{' and cross-attention' if cross else ''}", attention),
        Line(f"{name} feed-forward", f"{layers} × [{feed_forward_parameters(config)}]"),
        Line(f"{name} norms", f"({layers} × {attentions + 1}{last}) × {norm_size(config):,}"),
    ]


def embedding_lines(config: ModelConfig) -> list[Line]:
    """Return the parameters of the embeddings of tokens, positions and segments, per stack unless they are tied."""
    d = config.d_model
    vocabularies = {stack.name: config.vocab for stack in stacks(config)}
    both = len(vocabularies) == 2
    if both:
        vocabularies["encoder"] = config.source_vocab or config.vocab
    others = {
        "positions": f"{config.max_length:,} × {d:,}" if config.position == "learned" else "",
        "segments": f"{config.segments} × {d:,}" if config.segments else "",
        "embedding norm": f"{norm_size(config):,}" if config.embedding_norm else "",
    }
    lines = [Line(f"{name} {what}", how) for name in vocabularies for what, how in others.items() if how]
    if both and config.tied == "all":
        return [Line("decoder tokens (of the encoder too)", f"{config.vocab:,} × {d:,}"), *lines]
    return [Line(f"{name} tokens", f"{vocab:,} × {d:,}") for name, vocab in vocabularies.items()] + lines


def head_outputs(config: ModelConfig) -> int:
    """Return how many logits the head computes per vector."""
    return {"vocabulary": config.vocab, "classes": config.classes, "embedding": 0}[config.head]


def head_lines(config: ModelConfig) -> list[Line]:
    """Return the parameters of the head, without a matrix that is tied to the embedding."""
    d = config.d_model
    outputs = head_outputs(config)
    lines = []
    if config.head_dense:
        norm = f" + {norm_size(config):,} (norm)" if config.head == "vocabulary" else ""
        lines.append(Line("head dense layer", matrix(d, d, config.bias) + norm))
    if outputs and (config.tied == "none" or config.head != "vocabulary"):
        lines.append(Line("head", f"{d:,} × {outputs:,}"))
    if outputs and config.head_bias:
        lines.append(Line("head bias", f"{outputs:,}"))
    return lines


def parameter_lines(config: ModelConfig) -> list[Line]:
    """Return all parameters, by part."""
    blocks = [line for stack in stacks(config) for line in stack_lines(config, stack)]
    return embedding_lines(config) + blocks + head_lines(config)


# --- FLOPs ------------------------------------------------------------------------------------------------------------


def forward_lines(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the FLOPs of a forward pass per token: two (multiply, add) per weight, and those of attention.

    In an encoder-decoder, a token here is one target token together with one source token.
    """
    d = config.d_model
    layers = sum(stack.layers for stack in stacks(config))
    attentions = sum(stack.layers * stack.attentions for stack in stacks(config))
    matrices = 2 * d * (config.query_size + kv_size(config))
    feed_forward = 3 if config.activation == "swiglu" else 2
    lines = [
        Line("projections", f"2 × {attentions} × {matrices:,}"),
        Line("scores and mixing", f"4 × {attentions} × {shape.length:,} × {config.query_size:,}"),
        Line("feed-forward", f"2 × {layers} × {feed_forward} × {d:,} × {config.d_ff:,}"),
    ]
    return lines + head_flops(config, shape)


def head_flops(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the FLOPs of the head per token; a head that is applied once per sequence is divided among its tokens."""
    d = config.d_model
    outputs = head_outputs(config)
    if config.head == "vocabulary":
        return [Line("logits", f"2 × {d:,} × {outputs:,}" + (f" + 2 × {d:,}²" if config.head_dense else ""))]
    weights = d * (outputs + (d if config.head_dense else 0))
    return [Line("head", f"2 × {weights:,} / {shape.length:,}")] if weights else []


# --- memory -----------------------------------------------------------------------------------------------------------


def block_activations(config: ModelConfig, attentions: int) -> int:
    """Return how many numbers a block of one or two attentions stores for the backward pass, per token."""
    d = config.d_model
    drop = d if config.dropout else 0  # the dropout mask: floats on a CPU, a quarter of that on a GPU
    norm = 3 * d if config.norm == "rms" else 2 * d  # input and output; RMSNorm stores one more between its two kernels
    # Q and the output, K and V, a log-sum-exp per head
    attention = norm + 2 * config.query_size + 2 * kv_size(config) + config.heads + drop
    inner = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "silu": 2, "swiglu": 4}[config.activation]
    return attention * attentions + norm + inner * config.d_ff + drop


def block_matrices(config: ModelConfig) -> int:
    """Return the parameters of all matrices in the blocks, without biases: those that Muon optimises."""
    bare = replace(config, bias=False, qkv_bias=False, query_key_norm=False)
    return total(line for stack in stacks(bare) for line in stack_lines(bare, stack)[:2])


class ParameterCounts(NamedTuple):
    """How many parameters a model has in training, and how many of them are trained."""

    stored: int  # with the adapters of LoRA
    trained: int  # the others are frozen
    muon: int  # of the trained ones: those that Muon optimises instead of AdamW


def all_trained(config: ModelConfig, optimiser: str = "adamw") -> ParameterCounts:
    """Return the counts of a training without frozen parameters."""
    n = total(parameter_lines(config))
    return ParameterCounts(n, n, block_matrices(config) if optimiser == "muon" else 0)


def optimiser_lines(counts: ParameterCounts) -> list[Line]:
    """Return the bytes of optimiser state: AdamW stores two running averages per parameter, Muon one."""
    adamw = Line("AdamW's two averages", f"{counts.trained - counts.muon:,} × {2 * FLOAT}")
    muon = Line("Muon's one average", f"{counts.muon:,} × {FLOAT}")
    return [line for line in (adamw, muon) if line.value]


def memory_lines(config: ModelConfig, shape: BatchShape, counts: ParameterCounts) -> list[Line]:
    """Return the bytes of a training step in float32; activations are those of a training of all parameters."""
    lines = [
        Line("weights", f"{counts.stored:,} × {FLOAT}"),
        Line("gradients", f"{counts.trained:,} × {FLOAT}"),
        *optimiser_lines(counts),
    ]
    for name, layers, attentions in stacks(config):
        kept = block_activations(config, attentions)
        lines.append(Line(f"{name} activations", f"{shape.batch} × {shape.length} × {layers} × {kept:,} × {FLOAT}"))
    rows = shape.batch * (shape.length if config.head == "vocabulary" else 1)
    if outputs := head_outputs(config):  # the logits and their log-softmax
        lines.append(Line("logits and their softmax", f"{rows:,} × {outputs:,} × 2 × {FLOAT}"))
    return lines


def cache_lines(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the bytes of the key/value cache."""
    kinds = {"encoder-only": 0, "decoder-only": 1, "encoder-decoder": 2}[config.family]
    how = f"{shape.batch} × {shape.length} × {config.layers} × 2 × {kv_size(config):,} × {FLOAT}"
    return [Line(kind, how) for kind in ("keys and values", "keys and values of the source")[:kinds]]


# --- time -------------------------------------------------------------------------------------------------------------


def require_possible(gpus: int, utilisation: float) -> None:
    """Refuse a number of GPUs, or a fraction of their peak throughput, that cannot be."""
    fraction = "a fraction of the peak throughput, above 0 and at most 1"
    require(0 < utilisation <= 1, f"--utilisation {utilisation}: {fraction}")
    require(gpus > 0, f"--gpus {gpus}: must be at least 1")


def training_seconds(
    config: ModelConfig, shape: BatchShape, tokens: float, peak: float, gpus: int, utilisation: float
) -> float:
    """Return 3 × forward FLOPs × tokens / throughput: the backward pass costs twice the forward pass.

    `peak` is the peak throughput of a GPU in TFLOP/s.
    """
    require_possible(gpus, utilisation)
    flops = 3 * total(forward_lines(config, shape)) * tokens
    return flops / (gpus * peak * 1e12 * utilisation)


def readable(value: float, unit: str) -> str:
    """Return a large number with a metric prefix: 3.2 GB, 126 MFLOP, 65.1 M."""
    prefixes = ["", "k", "M", "G", "T", "P", "E"]
    rounded = float(f"{value:.3g}")
    power = min(int(math.log10(rounded) / 3), len(prefixes) - 1) if rounded >= 1 else 0
    return f"{rounded / 1000**power:.3g} {prefixes[power]}{unit}".strip()


def readable_time(seconds: float) -> str:
    """Return a time in the largest unit of which it has at least two."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"
