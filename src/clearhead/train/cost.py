"""The back of the envelope: parameters, FLOPs, memory and time of a model, each with the arithmetic that gives it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from clearhead.config import ModelConfig, require, suggest

FLOAT = 4  # bytes of a float32: weights, gradients and optimiser state are kept in it

# dense peak in TFLOP/s, without sparsity, as the maker publishes it: bfloat16, but float16 before the A100
GPUS = {
    "p100": 19,
    "t4": 65,
    "v100": 125,
    "l4": 121,
    "a100": 312,
    "rtx4090": 165,
    "h100": 989,
    "h200": 989,
    "b200": 2250,
}


class Line(NamedTuple):
    """One line of the envelope."""

    what: str
    how: str  # the arithmetic, in numbers
    value: int


@dataclass(frozen=True)
class Load:
    """What the model is asked to do."""

    batch: int = 32  # sequences at once
    length: int = 128  # tokens of each (of source and target each, in an encoder-decoder)


def total(lines: Iterable[Line]) -> int:
    """The sum of the values."""
    return sum(line.value for line in lines)


def stacks(config: ModelConfig) -> dict[str, int]:
    """The stacks of a family and how many blocks each has."""
    if config.family == "encoder-decoder":
        return {"encoder": config.encoder_layers or config.layers, "decoder": config.layers}
    return {"decoder" if config.family == "decoder-only" else "encoder": config.layers}


def kv_size(config: ModelConfig) -> int:
    """Width of all keys (or values) of a token."""
    return (config.kv_heads or config.heads) * config.head_size


# --- parameters -------------------------------------------------------------------------------------------------------


def matrix(rows: int, columns: int, bias: bool) -> tuple[str, int]:
    """A matrix with its bias: how it reads, and how many numbers it holds."""
    return f"{rows:,} × {columns:,}" + (f" + {columns:,}" if bias else ""), rows * columns + columns * bias


def norm_size(config: ModelConfig) -> int:
    """Numbers of one norm: a gain, and in a LayerNorm with biases a bias."""
    return config.d_model * (2 if config.norm == "layer" and config.bias else 1)


def attention_line(config: ModelConfig) -> Line:
    """One attention: queries and output of full width, keys and values of the key/value heads."""
    full, n_full = matrix(config.d_model, config.d_model, config.bias)
    shared, n_shared = matrix(config.d_model, kv_size(config), config.bias)
    how = f"4 × ({full})" if full == shared else f"2 × ({full}) + 2 × ({shared})"
    return Line("attention", how, 2 * n_full + 2 * n_shared)


def feed_forward_line(config: ModelConfig) -> Line:
    """One feed-forward: up and down, and a gate with SwiGLU."""
    up, n_up = matrix(config.d_model, config.d_ff, config.bias)
    down, n_down = matrix(config.d_ff, config.d_model, config.bias)
    ups = 2 if config.activation == "swiglu" else 1
    return Line("feed-forward", f"{f'2 × ({up})' if ups == 2 else up} + {down}", ups * n_up + n_down)


def stack_lines(config: ModelConfig, name: str, layers: int) -> list[Line]:
    """The blocks of one stack, by kind of sublayer."""
    cross = config.family == "encoder-decoder" and name == "decoder"
    attention, feed_forward = attention_line(config), feed_forward_line(config)
    attentions, norms = (2, 3) if cross else (1, 2)
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
    """Tables of tokens, positions and segments, once for each stack unless shared."""
    d, names = config.d_model, list(stacks(config))
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
    """How many logits the head gives for each vector it is shown."""
    return {"vocabulary": config.vocab, "classes": config.classes, "embedding": 0}[config.head]


def head_lines(config: ModelConfig) -> list[Line]:
    """What stands between the last vectors and the logits."""
    d, outputs, lines = config.d_model, head_outputs(config), []
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
    """All parameters, by part."""
    lines = embedding_lines(config)
    for name, layers in stacks(config).items():
        lines += stack_lines(config, name, layers)
    return lines + head_lines(config)


# --- FLOPs ------------------------------------------------------------------------------------------------------------


def forward_lines(config: ModelConfig, load: Load) -> list[Line]:
    """FLOPs of one forward pass, for each token: two (multiply, add) for each weight it meets, and attention.

    In an encoder-decoder a token is a target token together with a source token.
    """
    d, length, blocks = config.d_model, load.length, stacks(config)
    attentions = sum(blocks.values()) + (config.layers if len(blocks) == 2 else 0)
    matrices = 2 * d * d + 2 * d * kv_size(config)
    ups = 3 if config.activation == "swiglu" else 2
    layers = sum(blocks.values())
    lines = [
        Line("projections", f"2 × {attentions} × {matrices:,}", 2 * attentions * matrices),
        Line("scores and mixing", f"4 × {attentions} × {length:,} × {d:,}", 4 * attentions * length * d),
        Line("feed-forward", f"2 × {layers} × {ups} × {d:,} × {config.d_ff:,}", 2 * layers * ups * d * config.d_ff),
    ]
    return lines + head_flops(config, load)


def head_flops(config: ModelConfig, load: Load) -> list[Line]:
    """The head's share of a token's FLOPs; a head that speaks of whole sentences is shared by their tokens."""
    outputs = head_outputs(config)
    weights = config.d_model * (outputs + (config.d_model if config.head_dense else 0))
    if config.head == "vocabulary":
        how = f"2 × {config.d_model:,} × {outputs:,}" + (f" + 2 × {config.d_model:,}²" if config.head_dense else "")
        return [Line("logits", how, 2 * weights)]
    return [Line("head", f"2 × {weights:,} / {load.length:,}", 2 * weights // load.length)] if weights else []


# --- memory -----------------------------------------------------------------------------------------------------------


def block_activations(config: ModelConfig, cross: bool) -> int:
    """Numbers that one block keeps for the backward pass, for each token."""
    d, kv, f = config.d_model, kv_size(config), config.d_ff
    drop = d if config.dropout else 0  # the mask: floats on a CPU, a quarter of that on a GPU
    norm = 3 * d if config.norm == "rms" else 2 * d  # input and output; RMSNorm keeps one more between its two kernels
    attention = norm + (d + 2 * kv) + d + config.heads + drop  # Q, K, V, their mixture, a normaliser for each head
    inside = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "swiglu": 4}[config.activation]
    return attention * (2 if cross else 1) + norm + inside * f + drop


def block_matrices(config: ModelConfig) -> int:
    """Numbers of all matrices inside the blocks, without biases: what `train.optimiser = "muon"` gives to Muon."""
    bare = replace(config, bias=False)
    return total(line for name, layers in stacks(bare).items() for line in stack_lines(bare, name, layers)[:2])


def optimiser_lines(config: ModelConfig, optimiser: str) -> list[Line]:
    """Bytes that optimisers remember: AdamW averages of gradients and of their squares, Muon of gradients alone."""
    muon = block_matrices(config) if optimiser == "muon" else 0
    adamw = total(parameter_lines(config)) - muon
    lines = [Line("AdamW's two averages", f"{adamw:,} × {2 * FLOAT}", 2 * FLOAT * adamw)]
    return lines + ([Line("Muon's one average", f"{muon:,} × {FLOAT}", FLOAT * muon)] if muon else [])


def memory_lines(config: ModelConfig, load: Load, optimiser: str = "adamw") -> list[Line]:
    """Bytes of a training step in float32 in which everything learns."""
    n, tokens = total(parameter_lines(config)), load.batch * load.length
    lines = [
        Line("weights", f"{n:,} × {FLOAT}", FLOAT * n),
        Line("gradients", f"{n:,} × {FLOAT}", FLOAT * n),
        *optimiser_lines(config, optimiser),
    ]
    for name, layers in stacks(config).items():
        kept = block_activations(config, config.family == "encoder-decoder" and name == "decoder")
        how = f"{load.batch} × {load.length} × {layers} × {kept:,} × {FLOAT}"
        lines.append(Line(f"{name} activations", how, tokens * layers * kept * FLOAT))
    rows, outputs = (tokens if config.head == "vocabulary" else load.batch), head_outputs(config)
    if outputs:  # the logits and their log-softmax
        lines.append(
            Line("logits and their softmax", f"{rows:,} × {outputs:,} × 2 × {FLOAT}", rows * outputs * 2 * FLOAT)
        )
    return lines


def cache_lines(config: ModelConfig, load: Load) -> list[Line]:
    """Bytes of the keys and values that decoding keeps."""
    if config.family == "encoder-only":
        return []
    kv, kinds = kv_size(config), ["keys and values"]
    if config.family == "encoder-decoder":
        kinds.append("keys and values of the source")
    how = f"{load.batch} × {load.length} × {config.layers} × 2 × {kv:,} × {FLOAT}"
    size = load.batch * load.length * config.layers * 2 * kv * FLOAT
    return [Line(kind, how, size) for kind in kinds]


# --- time -------------------------------------------------------------------------------------------------------------


def training_seconds(config: ModelConfig, load: Load, tokens: float, gpu: str, gpus: int, utilisation: float) -> float:
    """3 × forward FLOPs × tokens over what the GPUs really do: backward costs twice the forward pass."""
    require(gpu in GPUS, f"--gpu {gpu!r}: unknown; {suggest(gpu, GPUS)}")
    require(
        0 < utilisation <= 1, f"--utilisation {utilisation}: the part of the peak that is reached, above 0, at most 1"
    )
    require(gpus > 0, f"--gpus {gpus}: must be at least 1")
    flops = 3 * total(forward_lines(config, load)) * tokens
    return flops / (gpus * GPUS[gpu] * 1e12 * utilisation)


def readable(value: float, unit: str) -> str:
    """A large number with its prefix: 3.2 GB, 126 MFLOP, 65.1 M."""
    prefixes = ["", "k", "M", "G", "T", "P", "E"]
    rounded = float(f"{value:.3g}")
    power = min(int(math.log10(rounded) / 3), len(prefixes) - 1) if rounded >= 1 else 0
    return f"{rounded / 1000**power:.3g} {prefixes[power]}{unit}".strip()


def readable_time(seconds: float) -> str:
    """Seconds in the unit a person would use."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"
