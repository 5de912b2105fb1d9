"""What a model answers: how probable it finds its answer, and how much of it depends on each part of the model.

Shapes: B rows of a batch, T tokens, V vocabulary, C classes, A parts of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.inspect.patch import AnyChange, Changes, patch
from clearhead.inspect.paths import kind_of, sublayers_of
from clearhead.inspect.trace import Trace, uncompiled, vocabulary
from clearhead.runs import Run

MOST_CELLS = 2**24  # of logits, or of the scores of an attention, in a forward pass of several copies of a text


@dataclass(frozen=True)
class Prediction:
    """Tokens or a class, each with the row of the logits that gives its probability; empty for a vector."""

    rows: tuple[int, ...]
    choices: tuple[int, ...]
    words: tuple[str, ...]


def output_of(run: Run) -> str:
    """The name of the tensor that is the model's output."""
    return "pooled" if run.recipe.model.head == "embedding" else "head.logits"


def answer_of(trace: Trace) -> Prediction:
    """The answer to a text.

    A translation with the token after it; the next token of a language model; the likeliest class; the tokens in place
    of masks, or if nothing is masked, the tokens of the text themselves.
    """
    config = trace.run.recipe.model
    if config.head == "embedding":
        return Prediction((), (), ())
    logits = trace["head.logits"][0]
    if config.head == "classes":
        best = int(logits.argmax())
        return Prediction((0,), (best,), (trace.named("head.logits").labels[-1][best],))
    if config.family == "encoder-only":
        rows, choices = masked_tokens(trace)
    else:
        ids = trace.ids["target"]
        first = 0 if config.family == "encoder-decoder" else len(ids) - 1
        rows = list(range(first, len(ids)))
        choices = [*ids[first + 1 :], int(logits[-1].argmax())]
    names = vocabulary(trace.run.tokenizers.target, logits.size(-1))
    return Prediction(tuple(rows), tuple(choices), tuple(names[choice] for choice in choices))


def masked_tokens(trace: Trace) -> tuple[list[int], list[int]]:
    """The positions of masks and the likeliest tokens there; if nothing is masked, all positions and their tokens."""
    tokenizer = trace.run.tokenizers.target
    ids = trace.ids["source"]
    rows = [row for row, number in enumerate(ids) if tokenizer.has("mask") and number == tokenizer.mask]
    if not rows:
        return list(range(1, len(ids) - 1)), list(ids[1:-1])
    return rows, trace["head.logits"][0, rows].argmax(-1).tolist()


def log_probabilities(trace: Trace, answer: Prediction) -> Tensor:
    """The log-probability of each part of an answer: (A,)."""
    return from_logits(trace.run, trace["head.logits"], answer)[0]


def from_logits(run: Run, logits: Tensor, answer: Prediction) -> Tensor:
    """The log-probabilities (B, A) of an answer from logits (B, T, V) of tokens or (B, C) of classes."""
    rows = logits.unsqueeze(1) if run.recipe.model.head == "classes" else logits
    chosen = rows[:, list(answer.rows)].float().log_softmax(-1)  # (B, A, V)
    return chosen[:, range(len(answer.rows)), list(answer.choices)].cpu()


def importance_cost(trace: Trace) -> int:
    """About how many multiplications it takes to measure the importance of every head and sublayer."""
    config = trace.run.recipe.model
    size = sum(parameter.numel() for parameter in trace.run.model.parameters())
    sublayers = 3 * sum(1 for _ in trace.run.model.blocks())
    return size * sum(map(len, trace.ids.values())) * sublayers * (config.heads + 2)


def rows_at_once(trace: Trace) -> int:
    """How many copies of a text go through the model in one pass, so that a long text does not need all the memory."""
    config = trace.run.recipe.model
    tokens = max(map(len, trace.ids.values()))
    return max(1, MOST_CELLS // (tokens * max(config.vocab, config.heads * tokens)))


@torch.no_grad()
def importance(trace: Trace, sublayer: str) -> list[float]:
    """How much the log-probability of the answer changes if a part is switched off: of each head, then of the sublayer.

    A feed-forward has one number only. For a sentence vector, it is the cosine with the vector before, minus 1. Each
    part is switched off in a row of its own of a batch; a long text takes several batches.
    """
    run = trace.run
    stack, *_ = sublayer.split(".")
    known = sublayers_of(stack, run.recipe.model)
    require(kind_of(sublayer) in known, f"sublayer {sublayer!r}: expected a path that ends in {' or '.join(known)}")
    heads = run.recipe.model.heads if kind_of(sublayer) != "feed_forward" else 0
    on = torch.ones(heads + 2, heads + 1)  # a row as it is, a row without each head, a row without all of it
    on[1:, :] -= torch.eye(heads + 1)
    batches = torch.split(on.to(run.device), rows_at_once(trace))
    if run.recipe.model.head == "embedding":
        vectors = torch.cat([without_parts(trace, sublayer, some) for some in batches])
        return (torch.cosine_similarity(vectors[1:], vectors[:1]) - 1).tolist()
    answer = answer_of(trace)
    totals = torch.cat([from_logits(run, without_parts(trace, sublayer, some), answer).sum(-1) for some in batches])
    return (totals[1:] - totals[0]).tolist()


def without_parts(trace: Trace, sublayer: str, on: Tensor) -> Tensor:
    """The output for copies of a text, each with other parts of a sublayer: on (B, H + 1) is 0 for each that is off.

    The last column stands for the whole sublayer, the others for its heads.
    """
    off: dict[str, AnyChange] = {sublayer: lambda x: x * on[:, -1, None, None].to(x.dtype)}
    if on.size(1) > 1:
        off[f"{sublayer}.head_outputs"] = lambda x: x * on[:, :-1, None, None].to(x.dtype)
    return run_copies(trace, len(on), off)


def run_copies(trace: Trace, count: int, changes: Changes) -> Tensor:
    """The model's output for a batch of copies of a text, with changes that may differ from copy to copy."""
    run = trace.run
    inputs = [ids.expand(count, -1) for ids in trace.inputs.tensors(run.device)]
    with patch(run, trace.changes), patch(run, changes), uncompiled(run.model):
        return run.model(*inputs)
