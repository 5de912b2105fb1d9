"""Training on many GPUs with FSDP2, estimated: memory of each GPU, communication, throughput.

    compute        3 × forward FLOPs of the tokens of one GPU / (peak × utilisation); 4 × if activations are recomputed
    communication  8 bytes per parameter: weights are gathered before the forward and before the backward pass (blocks
                   twice in bfloat16, the rest once in float32), and gradients are summed in float32
    step           the longer of the two, since FSDP gathers the next block while one computes; and in addition the
                   first gather and the last sum of a step, which have nothing to overlap with

docs/scale.md compares this with what was measured, and says what it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from clearhead.config import ModelConfig
from clearhead.train.cost import (
    FLOAT,
    BatchShape,
    Line,
    ParameterCounts,
    block_activations,
    forward_lines,
    head_outputs,
    memory_lines,
    parameter_lines,
    require_possible,
    stack_lines,
    stacks,
    total,
)

HALF = 2  # bytes of a bfloat16, in which blocks compute
LOGITS = 2**30  # bytes of the logits that the loss holds at once
GPUS_PER_NODE = 8
LINK_EFFICIENCY = 0.7  # part of the published bandwidth that collectives reach: an assumption
HOP = 2e-6  # seconds that a message takes from one GPU of a ring to the next: an assumption
MEASURED_UTILISATION = 0.45  # of the peak of one H200: gpt2 at 522,000 tokens/s, later a little more (docs/scale.md)


class Gpu(NamedTuple):
    """A kind of GPU, as its manufacturer publishes it; memory and bandwidths only of those that clusters have."""

    peak: float  # dense TFLOP/s in bfloat16, before the A100 in float16
    memory: float = 0  # GB
    node: float = 0  # GB/s in one direction between the GPUs of a node: NVLink
    network: float = 0  # GB/s in one direction between nodes, for each GPU: one network card


GPUS = {
    "p100": Gpu(19),
    "t4": Gpu(65),
    "v100": Gpu(125),
    "l4": Gpu(121),
    "a100": Gpu(312, 80, 300, 25),
    "rtx4090": Gpu(165),
    "h100": Gpu(989, 80, 450, 50),
    "h200": Gpu(989, 141, 450, 50),
    "b200": Gpu(2250, 180, 900, 50),
}
NODE_GPUS = {name: gpu for name, gpu in GPUS.items() if gpu.node}


@dataclass(frozen=True)
class Cluster:
    """The GPUs that a model is trained on, and the fraction of their peak that one of them reaches alone."""

    gpu: str
    gpus: int
    utilisation: float

    def __post_init__(self) -> None:
        require_possible(self.gpus, self.utilisation)

    @property
    def bandwidth(self) -> float:
        """Bytes per second that a collective moves through each GPU.

        Its rings leave a node through all network cards at once, so a node has the bandwidth of GPUS_PER_NODE of them.
        """
        gpu = NODE_GPUS[self.gpu]
        published = gpu.node if self.gpus <= GPUS_PER_NODE else min(gpu.node, GPUS_PER_NODE * gpu.network)
        return published * 1e9 * LINK_EFFICIENCY


# --- memory -----------------------------------------------------------------------------------------------------------


def block_sizes(config: ModelConfig) -> list[int]:
    """The parameters of one block of each stack: those of a stack of one block without its last norm."""
    bare = replace(config, norm_order="post")
    return [total(stack_lines(bare, stack._replace(layers=1))) for stack in stacks(bare)]


def root_size(config: ModelConfig) -> int:
    """The parameters outside the blocks: embeddings, head and the last norms."""
    pairs = zip(stacks(config), block_sizes(config), strict=True)
    return total(parameter_lines(config)) - sum(stack.layers * size for stack, size in pairs)


def gathered_line(config: ModelConfig, gpus: int) -> Line:
    """The bytes of whole weights and gradients on one GPU: of two blocks, one in use and one on its way, and the root.

    One GPU alone has all weights anyway; it needs a bfloat16 copy of them.
    """
    if gpus == 1:
        n = total(parameter_lines(config))
        return Line("weights in bfloat16", f"{n:,} × {HALF}")
    each = HALF + HALF + FLOAT  # weight, gradient, and the gradient in the precision of the sum
    how = f"2 × {max(block_sizes(config)):,} × {each} + {root_size(config):,} × {2 * FLOAT}"
    return Line("gathered weights and gradients", how)


def activation_line(config: ModelConfig, shape: BatchShape, recomputed: bool) -> Line:
    """The bytes that the forward pass keeps: numbers in bfloat16, and the residual stream before each norm in float32.

    Recomputed activations: the input of each block, and everything of one block.
    """
    tokens = shape.batch * shape.length
    stream = config.d_model * FLOAT
    blocks = {
        stack: HALF * block_activations(config, stack.attentions) + (stack.attentions + 1) * stream // 2
        for stack in stacks(config)
    }
    if recomputed:
        layers = sum(stack.layers for stack in blocks)
        return Line("activations, recomputed", f"{tokens:,} × ({layers} × {stream:,} + {max(blocks.values()):,})")
    kept = sum(stack.layers * block for stack, block in blocks.items())
    return Line("activations", f"{tokens:,} × {kept:,}")


def gpu_memory_lines(
    config: ModelConfig, shape: BatchShape, counts: ParameterCounts, gpus: int, recomputed: bool = False
) -> list[Line]:
    """Return the bytes that training in bfloat16 takes on each GPU; `shape` is the batch of one GPU."""
    states = [line for line in memory_lines(config, BatchShape(0, 0), counts) if line.value]
    lines = [Line(line.what, line.how + (f" / {gpus}" if gpus > 1 else "")) for line in states]
    lines += [gathered_line(config, gpus), activation_line(config, shape, recomputed)]
    if outputs := head_outputs(config):
        rows = shape.batch * (shape.length if config.head == "vocabulary" else 1)
        logits = min(LOGITS, rows * outputs * HALF)
        d = config.d_model
        how = f"{logits:,} + {rows:,} × {d:,} × {HALF} + {outputs:,} × {d:,} × {FLOAT}"
        lines.append(Line("loss: logits, two gradients", how))
    return lines


# --- time -------------------------------------------------------------------------------------------------------------


class StepTime(NamedTuple):
    """The seconds of a step in which each GPU computes one batch."""

    compute: float
    communication: float  # most of it at the same time as the computation
    exposed: float  # of the communication: what has nothing to overlap with
    tokens: int  # of all GPUs

    @property
    def seconds(self) -> float:
        """The whole step."""
        return max(self.compute, self.communication - self.exposed) + self.exposed

    @property
    def throughput(self) -> float:
        """Tokens per second of all GPUs."""
        return self.tokens / self.seconds


def step_time(config: ModelConfig, shape: BatchShape, cluster: Cluster, recomputed: bool = False) -> StepTime:
    """Return the time of a step with FSDP2; `shape` is the batch of one GPU."""
    tokens = shape.batch * shape.length
    flops = (4 if recomputed else 3) * total(forward_lines(config, shape)) * tokens
    compute = flops / (GPUS[cluster.gpu].peak * 1e12 * cluster.utilisation)
    n = cluster.gpus
    if n == 1:
        return StepTime(compute, 0.0, 0.0, tokens)
    moved = (n - 1) / n / cluster.bandwidth  # seconds per byte
    ring = (n - 1) * HOP  # seconds of an empty collective
    blocks = sum(stack.layers for stack in stacks(config))
    whole = total(parameter_lines(config)) * (2 * HALF + FLOAT) * moved + (3 * blocks + 2) * ring
    exposed = (root_size(config) * 2 * FLOAT + max(block_sizes(config)) * (HALF + FLOAT)) * moved + 4 * ring
    return StepTime(compute, whole, exposed, tokens * n)
