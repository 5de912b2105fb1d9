"""What a head does, measured by where its attention goes, and from which snapshot of a training run on it does so.

Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.inspect.answer import answer_of, from_logits, output_of, rows_at_once, run_copies
from clearhead.inspect.names import names_of
from clearhead.inspect.paths import Node, kind_of
from clearhead.inspect.trace import Trace, capture
from clearhead.runs import Run, load_weights, model_to_load

MIN_ROLE_SHARE = 0.5  # a head has a role if it gives more than this share of its attention to one kind of token
SAID = {
    "the aligned token": "alignment appears",
    "the previous token": "a head finds the previous token",
    "half": "half of the answer is as at the end",
    "all": "the whole answer is as at the end",
    "near": "the vector has a cosine of 0.9 or more with the final one",
}


class Role(NamedTuple):
    """What a head attends to most: the kind of token, and the share of attention that it gets."""

    name: str  # "" if no kind of token gets most of the attention
    share: float


def head_roles(trace: Trace, attention: str, aligned: Tensor | None = None) -> list[Role]:
    """The role of each head of an attention.

    `aligned` has, for each target token, the source token that it depends on (`alignment`); cross-attention needs it.
    """
    weights = trace[f"{attention}.weights"][0]  # (H, T, S)
    masks = kinds_of_keys(trace, attention, aligned)
    shares = {name: share_of(weights, mask) for name, mask in masks.items()}
    return [strongest({name: float(share[head]) for name, share in shares.items()}) for head in range(len(weights))]


def strongest(shares: dict[str, float]) -> Role:
    """The kind of token with the largest share, if it is most of the attention."""
    name = max(shares, key=lambda kind: shares[kind])
    return Role(name if shares[name] > MIN_ROLE_SHARE else "", shares[name])


def share_of(weights: Tensor, mask: Tensor) -> Tensor:
    """The mean attention (H,) to the keys of a mask (T, S), over the queries that have such a key."""
    asked = mask.any(-1)
    if not asked.any():
        return weights.new_zeros(len(weights))
    return (weights * mask).sum(-1)[:, asked].mean(-1)


def kinds_of_keys(trace: Trace, attention: str, aligned: Tensor | None) -> dict[str, Tensor]:
    """Which keys are of a kind, for each query: name of the kind -> mask (T, S)."""
    node = Node(attention, trace.run.recipe.model)
    count, keys = trace[f"{attention}.weights"].shape[-2:]
    row = torch.arange(count)[:, None]
    column = torch.arange(keys)
    if node.in_cross_attention:
        require(aligned is not None, "cross-attention needs an alignment to be compared with")
        assert aligned is not None
        return {
            "the aligned token": (column == aligned[:, None]) & (aligned[:, None] >= 0),
            "the beginning": (column == 0) & (row >= 0),
            "the end": (column == keys - 1) & (row >= 0),
        }
    ids = torch.tensor(trace.ids["source" if node.stack == "encoder" else "target"])
    kinds = {
        "the previous token": column == row - 1,
        "itself": (column == row) & (row > 0),
        "the same token": (ids == ids[:, None]) & (column < row),
        "the beginning": (column == 0) & (row > 1),
    }
    if not node.is_causal:
        kinds |= {"the next token": column == row + 1, "the end": (column == keys - 1) & (row < keys - 2)}
    return kinds


@torch.no_grad()
def alignment(trace: Trace) -> Tensor:
    """The source token on which each token of the target depends most: for each row of the logits its index, (T,).

    That is the one without which the token's probability falls most, when cross-attention may not see it in any block;
    -1 where no source token matters, or there is only one.
    """
    run = trace.run
    require(run.recipe.model.family == "encoder-decoder", "only a model with an encoder and a decoder aligns two texts")
    count = len(trace.ids["source"])
    everything = torch.ones(1, count, dtype=torch.bool)
    seen = torch.cat([everything, ~torch.eye(count, dtype=torch.bool)]).to(run.device)  # one row without each token
    answer = answer_of(trace)
    batches = torch.split(seen, rows_at_once(trace))
    found = torch.cat([from_logits(run, logits_without_tokens(trace, some), answer) for some in batches])  # (S + 1, T)
    falls = found[0] - found[1:]
    return torch.where((falls.amax(0) > 0.1) & (count > 1), falls.argmax(0), -1)


def logits_without_tokens(trace: Trace, seen: Tensor) -> Tensor:
    """The logits for copies of a text, in each of which cross-attention sees other source tokens: seen (B, S)."""
    hidden = {"decoder.blocks.*.cross_attention.mask": lambda mask: mask & seen[:, None, None, :]}
    return run_copies(trace, len(seen), hidden)


class Milestone(NamedTuple):
    """A training step, and what is there from this step on."""

    step: int
    what: str


def milestones(finished: Trace, snapshots: Mapping[int, Path]) -> list[Milestone]:
    """The milestones of a run for one text, in their order; `snapshots` has the weights of each step."""
    aligned = alignment(finished) if finished.run.recipe.model.family == "encoder-decoder" else None
    model = model_to_load(finished.run.recipe.model).requires_grad_(requires_grad=False).eval().to(finished.run.device)
    run = replace(finished.run, model=model)
    signs: dict[int, set[str]] = {}
    for step, path in sorted(snapshots.items()):
        load_weights(run.model, path)
        seen = capture(run, finished.inputs, {}, watched(run), gradients=False)
        signs[step] = {*roles_in(seen, aligned), *agreement(seen, finished)}
    found = [Milestone(step, said) for sign, said in SAID.items() for step in since(sign, signs)]
    return sorted(found)


def since(sign: str, signs: Mapping[int, set[str]]) -> Iterator[int]:
    """The first step from which on a sign is there to the end; none if it is missing at the end, or there at once."""
    steps = list(signs)
    missing = [step for step in steps if sign not in signs[step]]
    later = [step for step in steps if missing and step > missing[-1]]
    yield from later[:1]


def watched(run: Run) -> list[str]:
    """What is read off a snapshot: the weights of all heads, and the output."""
    names = names_of(run.model, run.recipe.model)
    return [name for name in names if kind_of(name) == "weights" or name == output_of(run)]


def agreement(early: Trace, finished: Trace) -> list[str]:
    """Agreement with the finished model: "half" or "all" of the likeliest tokens are equal, or a vector is "near"."""
    if finished.run.recipe.model.head == "embedding":
        return ["near"] if torch.cosine_similarity(early["pooled"], finished["pooled"]).item() >= 0.9 else []
    answers = [trace["head.logits"][0].argmax(-1).flatten() for trace in (early, finished)]
    same = (answers[0] == answers[1]).float().mean().item()
    return [*(["half"] if same >= 0.5 and len(answers[0]) > 1 else []), *(["all"] if same == 1 else [])]


def roles_in(trace: Trace, aligned: Tensor | None) -> Sequence[str]:
    """The roles that heads have."""
    attentions = [Node(name, trace.run.recipe.model).owner for name in trace if kind_of(name) == "weights"]
    return [role.name for name in attentions for role in head_roles(trace, name, aligned)]
