"""What a model costs: parameters, FLOPs, memory and training time, each with the arithmetic behind the number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from clearhead.config import ModelConfig, require

FLOAT = 4  # bytes of a float32, in which weights, gradients and optimiser state are stored


class Line(NamedTuple):
    """One line of a table: a quantity and how it is computed."""

    what: str
    how: str  # the arithmetic, in numbers
    value: int


@dataclass(frozen=True)
class BatchShape:
    """The size of a batch."""

    batch: int = 32  # sequences
    length: int = 128  # tokens per sequence (in an encoder-decoder, of source and target each)


def total(lines: Iterable[Line]) -> int:
    """Return the sum of the values."""
    return sum(line.value for line in lines)


def stacks(config: ModelConfig) -> dict[str, int]:
    """Return the stacks of a family and how many blocks each has."""
    if config.family == "encoder-decoder":
        return {"encoder": config.encoder_layers or config.layers, "decoder": config.layers}
    return {"decoder" if config.family == "decoder-only" else "encoder": config.layers}


def kv_size(config: ModelConfig) -> int:
    """Return the width of all keys (or values) of one token: G × K."""
    return (config.kv_heads or config.heads) * config.head_size


# --- parameters -------------------------------------------------------------------------------------------------------


def matrix(rows: int, columns: int, bias: bool) -> tuple[str, int]:
    """Return the arithmetic of a matrix with its bias, and its number of parameters."""
    return f"{rows:,} × {columns:,}" + (f" + {columns:,}" if bias else ""), rows * columns + columns * bias


def norm_size(config: ModelConfig, channels: int = 0) -> int:
    """Return the parameters of one norm of d_model or other channels: a gain, and in a LayerNorm with biases a bias."""
    return (channels or config.d_model) * (2 if config.norm == "layer" and config.bias else 1)


def attention_line(config: ModelConfig) -> Line:
    """Return the parameters of one attention: full width for queries and output, G × K for keys and values."""
    bias = config.bias or config.qkv_bias
    query, n_query = matrix(config.d_model, config.query_size, bias)
    shared, n_shared = matrix(config.d_model, kv_size(config), bias)
    out, n_out = matrix(config.query_size, config.d_model, config.bias)
    parts = Counter([query, shared, shared, out])
    how = " + ".join(f"{count} × ({part})" if count > 1 else part for part, count in parts.items())
    norms = 2 * norm_size(config, config.head_size) if config.query_key_norm else 0
    return Line("attention", how + (f" + {norms:,} (norms)" if norms else ""), n_query + 2 * n_shared + n_out + norms)


def feed_forward_line(config: ModelConfig) -> Line:
    """Return the parameters of one feed-forward layer: two matrices, with SwiGLU a third for the gate."""
    up, n_up = matrix(config.d_model, config.d_ff, config.bias)
    down, n_down = matrix(config.d_ff, config.d_model, config.bias)
    ups = 2 if config.activation == "swiglu" else 1
    return Line("feed-forward", f"{f'2 × ({up})' if ups == 2 else up} + {down}", ups * n_up + n_down)


def stack_lines(config: ModelConfig, name: str, layers: int) -> list[Line]:
    """Return the parameters of the blocks of one stack, by kind of sublayer."""
    cross = config.family == "encoder-decoder" and name == "decoder"
    attention = attention_line(config)
    feed_forward = feed_forward_line(config)
    attentions = 2 if cross else 1
    norms = attentions + 1
    last = 1 if config.norm_order == "pre" else 0
    size = norm_size(config)
    return [
        Line(
            f"{name} attention" + (" and cross-attention" if cross else ""),
            f"{layers} × {f'{attentions} × ' if cross else ''}[{attention.how}]",
            layers * attentions * attention.value,
        ),
        Line(f"{name} feed-forward", f"{layers} × [{feed_forward.how}]", layers * feed_forward.value),
        Line(
            f"{name} norms", f"({layers} × {norms}{' + 1' if last else ''}) × {size:,}", (layers * norms + last) * size
        ),
    ]


def embedding_lines(config: ModelConfig) -> list[Line]:
    """Return the parameters of the embeddings of tokens, positions and segments, per stack unless they are tied."""
    d = config.d_model
    names = list(stacks(config))
    lines = []
    for name in names:
        if name == "encoder" and len(names) == 2:
            if config.tied == "all":
                continue
            vocab = config.source_vocab or config.vocab
        else:
            vocab = config.vocab
        shared = " (of the encoder too)" if len(names) == 2 and config.tied == "all" else ""
        lines.append(Line(f"{name} tokens{shared}", f"{vocab:,} × {d:,}", vocab * d))
    for name in names:
        if config.position == "learned":
            lines.append(Line(f"{name} positions", f"{config.max_length:,} × {d:,}", config.max_length * d))
        if config.segments:
            lines.append(Line(f"{name} segments", f"{config.segments} × {d:,}", config.segments * d))
        if config.embedding_norm:
            lines.append(Line(f"{name} embedding norm", f"{norm_size(config):,}", norm_size(config)))
    return lines


def head_outputs(config: ModelConfig) -> int:
    """Return how many logits the head computes per vector."""
    return {"vocabulary": config.vocab, "classes": config.classes, "embedding": 0}[config.head]


def head_lines(config: ModelConfig) -> list[Line]:
    """Return the parameters of the head, without a matrix that is tied to the embedding."""
    d = config.d_model
    outputs = head_outputs(config)
    lines = []
    if config.head_dense:
        how, n = matrix(d, d, config.bias)
        norm = norm_size(config) if config.head == "vocabulary" else 0
        lines.append(Line("head dense layer", how + (f" + {norm:,} (norm)" if norm else ""), n + norm))
    tied = config.tied != "none" and config.head == "vocabulary"
    if outputs and not tied:
        lines.append(Line("head", f"{d:,} × {outputs:,}", d * outputs))
    if outputs and config.head_bias:
        lines.append(Line("head bias", f"{outputs:,}", outputs))
    return lines


def parameter_lines(config: ModelConfig) -> list[Line]:
    """Return all parameters, by part."""
    lines = embedding_lines(config)
    for name, layers in stacks(config).items():
        lines += stack_lines(config, name, layers)
    return lines + head_lines(config)


# --- FLOPs ------------------------------------------------------------------------------------------------------------


def forward_lines(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the FLOPs of a forward pass per token: two (multiply, add) per weight, and those of attention.

    In an encoder-decoder, a token here is one target token together with one source token.
    """
    d = config.d_model
    length = shape.length
    blocks = stacks(config)
    attentions = sum(blocks.values()) + (config.layers if len(blocks) == 2 else 0)
    matrices = 2 * d * (config.query_size + kv_size(config))
    mixing = 4 * attentions * length * config.query_size
    ups = 3 if config.activation == "swiglu" else 2
    layers = sum(blocks.values())
    lines = [
        Line("projections", f"2 × {attentions} × {matrices:,}", 2 * attentions * matrices),
        Line("scores and mixing", f"4 × {attentions} × {length:,} × {config.query_size:,}", mixing),
        Line("feed-forward", f"2 × {layers} × {ups} × {d:,} × {config.d_ff:,}", 2 * layers * ups * d * config.d_ff),
    ]
    return lines + head_flops(config, shape)


def head_flops(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the FLOPs of the head per token; a head that is applied once per sequence is divided among its tokens."""
    outputs = head_outputs(config)
    weights = config.d_model * (outputs + (config.d_model if config.head_dense else 0))
    if config.head == "vocabulary":
        how = f"2 × {config.d_model:,} × {outputs:,}" + (f" + 2 × {config.d_model:,}²" if config.head_dense else "")
        return [Line("logits", how, 2 * weights)]
    return [Line("head", f"2 × {weights:,} / {shape.length:,}", 2 * weights // shape.length)] if weights else []


# --- memory -----------------------------------------------------------------------------------------------------------


def block_activations(config: ModelConfig, cross: bool) -> int:
    """Return how many numbers one block stores for the backward pass, per token."""
    d = config.d_model
    drop = d if config.dropout else 0  # the dropout mask: floats on a CPU, a quarter of that on a GPU
    norm = 3 * d if config.norm == "rms" else 2 * d  # input and output; RMSNorm stores one more between its two kernels
    # Q and the output, K and V, a log-sum-exp per head
    attention = norm + 2 * config.query_size + 2 * kv_size(config) + config.heads + drop
    inner = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "silu": 2, "swiglu": 4}[config.activation]
    return attention * (2 if cross else 1) + norm + inner * config.d_ff + drop


def block_matrices(config: ModelConfig) -> int:
    """Return the parameters of all matrices in the blocks, without biases: those that Muon optimises."""
    bare = replace(config, bias=False, qkv_bias=False, query_key_norm=False)
    return total(line for name, layers in stacks(bare).items() for line in stack_lines(bare, name, layers)[:2])


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
    adamw = counts.trained - counts.muon
    first = Line("AdamW's two averages", f"{adamw:,} × {2 * FLOAT}", 2 * FLOAT * adamw)
    second = Line("Muon's one average", f"{counts.muon:,} × {FLOAT}", FLOAT * counts.muon)
    return [line for line in (first, second) if line.value]


def memory_lines(config: ModelConfig, shape: BatchShape, counts: ParameterCounts) -> list[Line]:
    """Return the bytes of a training step in float32; activations are those of a training of all parameters."""
    tokens = shape.batch * shape.length
    lines = [
        Line("weights", f"{counts.stored:,} × {FLOAT}", FLOAT * counts.stored),
        Line("gradients", f"{counts.trained:,} × {FLOAT}", FLOAT * counts.trained),
        *optimiser_lines(counts),
    ]
    for name, layers in stacks(config).items():
        kept = block_activations(config, config.family == "encoder-decoder" and name == "decoder")
        how = f"{shape.batch} × {shape.length} × {layers} × {kept:,} × {FLOAT}"
        lines.append(Line(f"{name} activations", how, tokens * layers * kept * FLOAT))
    rows = tokens if config.head == "vocabulary" else shape.batch
    if outputs := head_outputs(config):  # the logits and their log-softmax
        how = f"{rows:,} × {outputs:,} × 2 × {FLOAT}"
        lines.append(Line("logits and their softmax", how, rows * outputs * 2 * FLOAT))
    return lines


def cache_lines(config: ModelConfig, shape: BatchShape) -> list[Line]:
    """Return the bytes of the key/value cache."""
    if config.family == "encoder-only":
        return []
    kv = kv_size(config)
    kinds = ["keys and values"]
    if config.family == "encoder-decoder":
        kinds.append("keys and values of the source")
    how = f"{shape.batch} × {shape.length} × {config.layers} × 2 × {kv:,} × {FLOAT}"
    size = shape.batch * shape.length * config.layers * 2 * kv * FLOAT
    return [Line(kind, how, size) for kind in kinds]


# --- time -------------------------------------------------------------------------------------------------------------


def training_seconds(
    config: ModelConfig, shape: BatchShape, tokens: float, peak: float, gpus: int, utilisation: float
) -> float:
    """Return 3 × forward FLOPs × tokens / throughput: the backward pass costs twice the forward pass.

    `peak` is the peak throughput of a GPU in TFLOP/s.
    """
    require(
        0 < utilisation <= 1, f"--utilisation {utilisation}: a fraction of the peak throughput, above 0 and at most 1"
    )
    require(gpus > 0, f"--gpus {gpus}: must be at least 1")
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
