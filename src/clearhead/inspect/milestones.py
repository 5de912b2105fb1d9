"""Milestones of training: from which snapshot on a head has its role, and the model its final answer.

All snapshots read the same tokens, those of the finished model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from clearhead.inspect.names import names_of
from clearhead.inspect.paths import Node, kind_of
from clearhead.inspect.roles import alignment, head_roles
from clearhead.inspect.trace import Trace, capture
from clearhead.runs import Run, load_weights, model_to_load

SAID = {
    "the aligned token": "alignment appears",
    "the previous token": "a head finds the previous token",
    "half": "half of the answer is as at the end",
    "all": "the whole answer is as at the end",
    "near": "the vector has a cosine of 0.9 or more with the final one",
}


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
    output = "pooled" if run.recipe.model.head == "embedding" else "head.logits"
    return [name for name in names if kind_of(name) == "weights" or name == output]


def agreement(early: Trace, finished: Trace) -> list[str]:
    """Whether the likeliest tokens, or half of them, are those of the finished model; whether a vector is near its."""
    if finished.run.recipe.model.head == "embedding":
        return ["near"] if torch.cosine_similarity(early["pooled"], finished["pooled"]).item() >= 0.9 else []
    answers = [trace["head.logits"][0].argmax(-1).flatten() for trace in (early, finished)]
    same = (answers[0] == answers[1]).float().mean().item()
    return [*(["half"] if same >= 0.5 and len(answers[0]) > 1 else []), *(["all"] if same == 1 else [])]


def roles_in(trace: Trace, aligned: torch.Tensor | None) -> Sequence[str]:
    """The roles that heads have."""
    attentions = [Node(name, trace.run.recipe.model).owner for name in trace if kind_of(name) == "weights"]
    return [role.name for name in attentions for role in head_roles(trace, name, aligned)]
