"""Ways to interpret a trace: logit lens, attention rollout, contributions to a logit, saliency.

Shapes: L layers, T tokens, D model, H heads, K head size, V vocabulary, C parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.config import UserError, require
from clearhead.inspect.kinds.cell import plain_matrix
from clearhead.inspect.names import latest
from clearhead.inspect.patch import HOOKS, edited
from clearhead.inspect.paths import block_output, last_block_output, sublayers_of
from clearhead.inspect.trace import Trace
from clearhead.model import EncoderOnly
from clearhead.model.attention import Attention
from clearhead.model.block import Block
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import Stack
from clearhead.runs import Run


def last_stack(trace: Trace) -> str:
    """The stack whose output the head reads."""
    return "encoder" if trace.run.recipe.model.family == "encoder-only" else "decoder"


def has_token_logits(trace: Trace) -> bool:
    """Whether there are logits for each token, and not for the text as a whole."""
    return trace.run.recipe.model.head == "vocabulary"


def check_logits(trace: Trace, position: int, choice: int) -> None:
    """Refuse a model without logits, and a position or choice that does not exist."""
    require(
        trace.run.recipe.model.head != "embedding",
        "model.head = 'embedding': this model has no logits; look at 'pooled' instead",
    )
    *_, tokens, choices = trace["head.logits"].shape
    require(
        not has_token_logits(trace) or -tokens <= position < tokens,
        f"position {position}: there are {tokens} tokens, counted from 0",
    )
    require(0 <= choice < choices, f"choice {choice}: there are {choices:,} logits, counted from 0")


def pooled(run: Run, x: Tensor) -> Tensor:
    """One vector for each text, pooled as in the model: (B, T, D) -> (B, D)."""
    assert isinstance(run.model, EncoderOnly)
    return run.model.pool(x, None)


@torch.no_grad()
def logit_lens(trace: Trace, positions: Sequence[int] | None = None) -> dict[str, Tensor]:
    """The logits of the head applied to the residual stream after each layer: name of the stream -> logits.

    With pre-norm, the stack's final norm is applied before the head; with post-norm, each layer's output is normalized
    already. Logits are (P, V) for the chosen positions, all by default; for classes, (C).
    """
    check_logits(trace, 0, 0)
    run = trace.run
    name = last_stack(trace)
    stack = run.model.get_submodule(name)
    assert isinstance(stack, Stack)
    after_blocks = [block_output(f"{name}.blocks.{number}") for number in range(len(stack.blocks))]
    streams = [latest(f"{name}.sum", run.recipe.model), *after_blocks]
    x = torch.cat([trace[stream] for stream in streams])  # (L + 1, T, D): one matrix product for all layers
    x = x.to(run.device, next(stack.parameters()).dtype)
    if positions is not None and has_token_logits(trace):
        x = x[:, list(positions)]
    with edited(run, trace.changes):
        x = x if stack.norm is None else stack.norm(x)
        logits = run.model.head(x if has_token_logits(trace) else pooled(run, x)).cpu()
    return dict(zip(streams, logits, strict=True))


def rollout(trace: Trace, stack: str) -> Tensor:
    """Attention rollout: the share of each token's vector that comes from each input token; after each layer (L, T, T).

    Each layer is the mean of the identity, for the residual stream, and of the attention weights averaged over heads;
    layers are multiplied (Abnar and Zuidema, 2020). Each row sums to 1. The norms of the values are ignored, so it is
    a rough estimate.
    """
    layers: list[Tensor] = []
    names = [name for name in trace if name.startswith(f"{stack}.") and name.endswith(".attention.weights")]
    require(bool(names), f"stack {stack!r}: the trace has no attention weights of it")
    for name in names:
        mixed = trace[name][0].mean(0)  # (H, T, T) -> (T, T)
        mixed = (mixed + torch.eye(len(mixed), dtype=mixed.dtype)) / 2
        mixed = mixed / mixed.sum(-1, keepdim=True)  # with a head knocked out, rows sum to less than 1
        layers.append(mixed @ layers[-1] if layers else mixed)
    return torch.stack(layers)


@dataclass(frozen=True)
class Contributions:
    """The terms that a logit is the sum of."""

    logit: float
    parts: dict[str, float]  # "decoder.blocks.0.attention head 3", "decoder.blocks.0.feed_forward", biases, embeddings
    rest: float  # what remains: rounding errors, unless a sublayer's output was changed


class Parts:
    """The residual stream of some tokens as a sum of named parts, to each of which norms are applied."""

    def __init__(self) -> None:
        self.vectors: dict[str, Tensor] = {}  # each (..., D)

    def add(self, name: str, vector: Tensor) -> None:
        """Add a part."""
        self.vectors[name] = vector.double()

    def normalize(self, name: str, norm: LayerNorm | RMSNorm, whole: Tensor) -> None:
        """Apply a norm to every part, with the standard deviation of the whole stream.

        With a fixed standard deviation the norm is linear: from each part its own mean is subtracted, all are divided
        by the same number, and they add up to the norm's output. (Without a part the standard deviation would have
        been different. To see that effect, knock the part out.)
        """
        whole = whole.double()
        centred = whole - whole.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else whole
        std = torch.sqrt(centred.square().mean(-1, keepdim=True) + norm.epsilon)
        for part, vector in self.vectors.items():
            if isinstance(norm, LayerNorm):
                vector = vector - vector.mean(-1, keepdim=True)
            self.vectors[part] = vector / std * norm.weight.double().cpu()
        if isinstance(norm, LayerNorm) and norm.bias is not None:
            self.add(f"{name}.bias", norm.bias.cpu().expand_as(whole))


@torch.no_grad()
def contributions(trace: Trace, choice: int, position: int = -1) -> Contributions:
    """The contribution of each head, feed-forward, embedding and bias to one logit; they sum to the logit.

    `choice` is the token or class, `position` that of the logits (a text as a whole has only one). Norms are applied
    with the standard deviations that they had; see `Parts.normalize`.
    """
    check_logits(trace, position, choice)
    run = trace.run
    if run.recipe.model.head_dense:
        raise UserError(
            "model.head_dense = true: the head has a nonlinearity, so a logit is not a sum of parts; use saliency"
        )
    where = position if has_token_logits(trace) else slice(None)
    with edited(run, trace.changes):
        parts = stream_parts(trace, where)
        project = plain_matrix(run.model.head.project, "head.project")
        if not has_token_logits(trace):
            parts.vectors = {name: pooled(run, vectors[None])[0] for name, vectors in parts.vectors.items()}
        direction = project.weight[choice].double().cpu()
        found = {name: float(vector @ direction) for name, vector in parts.vectors.items()}
        if project.bias is not None:
            found["head.project.bias"] = float(project.bias[choice])
    logits = trace["head.logits"][0]
    logit = float(logits[position, choice] if has_token_logits(trace) else logits[choice])
    return Contributions(logit, found, logit - sum(found.values()))


def stream_parts(trace: Trace, where: int | slice) -> Parts:
    """The output of a stack as a sum of parts."""
    name = last_stack(trace)
    config = trace.run.recipe.model
    stack = trace.run.model.get_submodule(name)
    parts = Parts()
    assert isinstance(stack, Stack)
    parts.add(f"{name}.embedding", trace[f"{name}.embedding"][0, where])
    if config.position in ("sinusoidal", "learned"):
        parts.add(f"{name}.position", trace[f"{name}.position"][where])
    if stack.segment is not None:
        parts.add(f"{name}.segment", trace[f"{name}.segment"][0, where])
    if stack.embedding_norm is not None:
        parts.normalize(f"{name}.embedding_norm", stack.embedding_norm, trace[f"{name}.sum"][0, where])
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        add_block(parts, trace, f"{name}.blocks.{number}", block, where)
    if stack.norm is not None:
        parts.normalize(f"{name}.norm", stack.norm, trace[last_block_output(name, config)][0, where])
    return parts


def add_block(parts: Parts, trace: Trace, name: str, block: Block, where: int | slice) -> None:
    """Add the outputs of the sublayers of a block; with post-norm, apply the norm after each."""
    for sublayer in sublayers_of(name.partition(".")[0], trace.run.recipe.model):
        path = f"{name}.{sublayer}"
        module = block.get_submodule(sublayer)
        add_norm = block.get_submodule(f"{sublayer}_add_norm")
        if isinstance(module, Attention):
            add_heads(parts, path, module, trace[f"{path}.head_outputs"][0, :, where])
        else:
            parts.add(path, trace[path][0, where])
        if not add_norm.norm_first:
            norm = add_norm.norm
            assert isinstance(norm, LayerNorm | RMSNorm)
            parts.normalize(f"{path}_add_norm.norm", norm, trace[f"{path}_add_norm.added"][0, where])


def add_heads(parts: Parts, name: str, attention: Attention, outputs: Tensor) -> None:
    """Add the output of each head: its columns of the output matrix times its vectors (H, ..., K)."""
    out = plain_matrix(attention.out, f"{name}.out")
    columns = torch.tensor_split(out.weight.cpu(), attention.heads, dim=1)  # H of (D, K)
    for head, (matrix, output) in enumerate(zip(columns, outputs, strict=True)):
        parts.add(f"{name} head {head}", nn.functional.linear(output, matrix.to(output.dtype)))
    if out.bias is not None:
        parts.add(f"{name}.out.bias", out.bias.cpu().expand(*outputs.shape[1:-1], -1))


def saliency(trace: Trace, choice: int, position: int = -1) -> dict[str, Tensor]:
    """Gradient × input: the first-order effect of each token's embedding on one logit; side -> (T).

    That is the dot product of the embedding and the gradient of the logit with respect to it.
    """
    check_logits(trace, position, choice)
    names = {f"{'encoder' if side == 'source' else 'decoder'}.embedding": side for side in trace.tokens}
    with HOOKS:  # no other thread may change a parameter between the two passes
        again = trace.again(only=[*names, "head.logits"], gradients=True)
        logits = again["head.logits"][0]
        logit = logits[position, choice] if has_token_logits(trace) else logits[choice]
        inputs = [again[name] for name in names]
        gradients = torch.autograd.grad(logit, inputs)
    return {
        side: (gradient * value).sum(-1)[0].detach().cpu()
        for side, gradient, value in zip(names.values(), gradients, inputs, strict=True)
    }


def likeliest(logits: Tensor, labels: Sequence[str], count: int = 5) -> list[tuple[str, float]]:
    """The labels of the highest logits (V), with their probabilities."""
    best = logits.softmax(-1).topk(min(count, len(logits)))
    return [(labels[i], p) for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
