"""Lenses: what the layers would say, whom the heads look through, and what made a logit as high as it is.

Shapes: L layers, T tokens, D model, H heads, K head size, V vocabulary, C parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.config import UserError, require
from clearhead.glass.graph import latest
from clearhead.glass.kinds.cell import plain_matrix
from clearhead.glass.patch import edited
from clearhead.glass.paths import block_output, last_block_output
from clearhead.glass.trace import Trace
from clearhead.model import EncoderOnly
from clearhead.model.attention import Attention
from clearhead.model.block import Block, LayerNorm, RMSNorm
from clearhead.model.stack import Stack
from clearhead.runs import Run


def last_stack(trace: Trace) -> str:
    """The stack whose last vectors the head reads."""
    return "encoder" if trace.run.recipe.model.family == "encoder-only" else "decoder"


def of_words(trace: Trace) -> bool:
    """Whether there are logits for every token, and not for the sentence as a whole."""
    return trace.run.recipe.model.head == "vocabulary"


def check_logits(trace: Trace, place: int, choice: int) -> None:
    """Refuse what has no logits, or not these."""
    require(
        trace.run.recipe.model.head != "embedding",
        "model.head = 'embedding': this model gives a vector and no logits; look at 'pooled' instead",
    )
    *_, tokens, choices = trace["head.logits"].shape
    require(not of_words(trace) or -tokens <= place < tokens, f"place {place}: there are {tokens} tokens, from 0")
    require(0 <= choice < choices, f"choice {choice}: there are {choices:,} logits, from 0")


def pooled(run: Run, x: Tensor) -> Tensor:
    """One vector for each sentence, as an encoder-only model makes it: (B, T, D) -> (B, D)."""
    assert isinstance(run.model, EncoderOnly)
    return run.model.pool(x, None)


@torch.no_grad()
def logit_lens(trace: Trace, places: Sequence[int] | None = None) -> dict[str, Tensor]:
    """What the head would say if it read the stream after each layer already: name of the stream -> logits.

    With pre-norm the stack's last norm comes before the head; with post-norm every layer has been normalized already.
    Logits are (P, V) for the chosen places, all by default; of classes, (C).
    """
    check_logits(trace, 0, 0)
    run, name = trace.run, last_stack(trace)
    stack, config = run.model.get_submodule(name), run.recipe.model
    assert isinstance(stack, Stack)
    after_blocks = [block_output(f"{name}.blocks.{number}") for number in range(len(stack.blocks))]
    streams = [latest(f"{name}.sum", config), *after_blocks]
    x = torch.cat([trace[stream] for stream in streams])  # (L + 1, T, D): all layers at once, the head is large
    x = x.to(run.device, next(stack.parameters()).dtype)
    if places is not None and of_words(trace):
        x = x[:, list(places)]
    with edited(run, trace.changes):
        x = x if stack.norm is None else stack.norm(x)
        logits = run.model.head(x if of_words(trace) else pooled(run, x)).cpu()
    return dict(zip(streams, logits, strict=True))


def rollout(trace: Trace, stack: str) -> Tensor:
    """Attention rollout: how much of each token's vector comes from each token, after each layer, (L, T, T).

    Of every layer half is taken from the stream and half from the mean of its heads' weights, multiplied up from the
    first layer (Abnar and Zuidema, 2020). Each row sums to 1. It takes all values for equally large: a rough picture.
    """
    layers: list[Tensor] = []
    names = [name for name in trace if name.startswith(f"{stack}.") and name.endswith(".attention.weights")]
    require(bool(names), f"stack {stack!r}: the trace has no attention weights of it")
    for name in names:
        mixed = trace[name][0].mean(0)  # (H, T, T) -> (T, T)
        mixed = (mixed + torch.eye(len(mixed), dtype=mixed.dtype)) / 2
        mixed = mixed / mixed.sum(-1, keepdim=True)  # a head that was switched off leaves rows that sum to less
        layers.append(mixed @ layers[-1] if layers else mixed)
    return torch.stack(layers)


@dataclass(frozen=True)
class Contributions:
    """What a logit is the sum of."""

    logit: float
    parts: dict[str, float]  # "decoder.blocks.0.attention head 3", "decoder.blocks.0.feed_forward", biases, embeddings
    rest: float  # what is left: nothing but rounding, unless a sublayer's output was changed by hand


class Parts:
    """The residual stream of some tokens as a sum of named parts; a norm works on each of them alike."""

    def __init__(self) -> None:
        self.vectors: dict[str, Tensor] = {}  # each (..., D)

    def add(self, name: str, vector: Tensor) -> None:
        """One more part."""
        self.vectors[name] = vector.double()

    def normalize(self, name: str, norm: LayerNorm | RMSNorm, whole: Tensor) -> None:
        """Pass every part through a norm whose deviation is the one that the whole stream had.

        So the norm is linear: each part loses its own mean and is divided by the common deviation, and the parts add
        up to exactly what the norm gave. (What would have happened without a part is another question: the deviation
        would have changed as well. For that, knock it out.)
        """
        whole = whole.double()
        centred = whole - whole.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else whole
        deviation = torch.sqrt(centred.square().mean(-1, keepdim=True) + norm.epsilon)
        for part, vector in self.vectors.items():
            if isinstance(norm, LayerNorm):
                vector = vector - vector.mean(-1, keepdim=True)
            self.vectors[part] = vector / deviation * norm.weight.double().cpu()
        if isinstance(norm, LayerNorm) and norm.bias is not None:
            self.add(f"{name}.bias", norm.bias.cpu().expand_as(whole))


@torch.no_grad()
def contributions(trace: Trace, choice: int, place: int = -1) -> Contributions:
    """What each head, each feed-forward, each embedding and each bias adds to one logit; their sum is the logit.

    `choice` is the token or class, `place` the token whose logits are meant (a sentence has only one). Norms count with
    the deviation that they had; see `Parts.normalize`.
    """
    check_logits(trace, place, choice)
    run, config = trace.run, trace.run.recipe.model
    if config.head_dense:
        raise UserError(
            "model.head_dense = true: the head bends its input, so a logit is no sum of parts; use saliency"
        )
    where = place if of_words(trace) else slice(None)
    with edited(run, trace.changes):
        parts = stream_parts(trace, where)
        project = plain_matrix(run.model.head.project, "head.project")
        if not of_words(trace):
            parts.vectors = {name: pooled(run, vectors[None])[0] for name, vectors in parts.vectors.items()}
        direction = project.weight[choice].double().cpu()
        found = {name: float(vector @ direction) for name, vector in parts.vectors.items()}
        if project.bias is not None:
            found["head.project.bias"] = float(project.bias[choice])
    logits = trace["head.logits"][0]
    logit = float(logits[place, choice] if of_words(trace) else logits[choice])
    return Contributions(logit, found, logit - sum(found.values()))


def stream_parts(trace: Trace, where: int | slice) -> Parts:
    """The last vectors of a stack as a sum of parts."""
    name, config = last_stack(trace), trace.run.recipe.model
    stack, parts = trace.run.model.get_submodule(name), Parts()
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
    """What the sublayers of a block add, each after the other; with post-norm, each followed by its norm."""
    for sublayer in ("attention", *(["cross_attention"] if block.cross else []), "feed_forward"):
        path = f"{name}.{sublayer}"
        module, add_norm = block.get_submodule(sublayer), block.get_submodule(f"{sublayer}_add_norm")
        if isinstance(module, Attention):
            add_heads(parts, path, module, trace[f"{path}.head_outputs"][0, :, where])
        else:
            parts.add(path, trace[path][0, where])
        if not add_norm.norm_first:
            norm = add_norm.norm
            assert isinstance(norm, LayerNorm | RMSNorm)
            parts.normalize(f"{path}_add_norm.norm", norm, trace[f"{path}_add_norm.added"][0, where])


def add_heads(parts: Parts, name: str, attention: Attention, outputs: Tensor) -> None:
    """What each head adds to the stream: its own columns of the output matrix times what it found (H, ..., K)."""
    out = plain_matrix(attention.out, f"{name}.out")
    columns = torch.tensor_split(out.weight.cpu(), attention.heads, dim=1)  # H of (D, K)
    for head, (matrix, found) in enumerate(zip(columns, outputs, strict=True)):
        parts.add(f"{name} head {head}", nn.functional.linear(found, matrix.to(found.dtype)))
    if out.bias is not None:
        parts.add(f"{name}.out.bias", out.bias.cpu().expand(*outputs.shape[1:-1], -1))


def saliency(trace: Trace, choice: int, place: int = -1) -> dict[str, Tensor]:
    """Gradient × input: how much each token's embedding speaks for one logit, to first order; side -> (T).

    The sum over the channels of the embedding times the gradient of the logit with respect to it.
    """
    check_logits(trace, place, choice)
    names = {f"{'encoder' if side == 'source' else 'decoder'}.embedding": side for side in trace.tokens}
    again = trace.again(only=[*names, "head.logits"], gradients=True)
    logits = again["head.logits"][0]
    logit = logits[place, choice] if of_words(trace) else logits[choice]
    inputs = [again[name] for name in names]
    gradients = torch.autograd.grad(logit, inputs)
    return {
        side: (gradient * value).sum(-1)[0].detach().cpu()
        for side, gradient, value in zip(names.values(), gradients, inputs, strict=True)
    }


def likeliest(logits: Tensor, labels: Sequence[str], count: int = 5) -> list[tuple[str, float]]:
    """The words with the highest logits (V), and their probabilities."""
    best = logits.softmax(-1).topk(min(count, len(logits)))
    return [(labels[i], p) for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
