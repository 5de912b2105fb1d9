"""Conversations: what a model answers in each, and how likely it holds the true answers.

Shapes: B conversations, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from clearhead.data.batches import IGNORE, Batch
from clearhead.data.examples import Dialogue
from clearhead.decode.batching import Watch, batches_of
from clearhead.decode.generate import remember
from clearhead.decode.limits import model_for, room
from clearhead.decode.search import Ending, greedy
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.text.chat import render

TOKENS = 256  # of an answer at most


class Answers(NamedTuple):
    """What a model says next in conversations."""

    texts: list[str]
    shortened: int  # conversations of which the model could not read the oldest messages


@torch.inference_mode()
def answers(run: Run, dialogues: Sequence[Dialogue], watch: Watch = iter) -> Answers:
    """What the assistant says next, greedily: `decode.write.answer` for many conversations side by side."""
    model, tokenizer = model_for(run, "chat"), run.tokenizers.target
    assert isinstance(model, DecoderOnly)
    kept = [remember(run, dialogue, TOKENS) for dialogue in dialogues]
    texts = [""] * len(kept)
    for members, ids, real in watch(batches_of([row for row, _ in kept], tokenizer.pad, run.device, left=True)):
        longest = room(run, torch.full((len(ids),), TOKENS, device=ids.device), ids.size(1))
        ending = Ending((tokenizer.end,), tokenizer.pad, longest)
        for member, best in zip(members, greedy(model, model.start(ids, real), ending), strict=True):
            texts[member] = tokenizer.decode(best.ids)
    return Answers(texts, sum(forgotten > 0 for _, forgotten in kept))


def true_answers(run: Run, dialogues: Sequence[Dialogue]) -> Iterator[Batch]:
    """Conversations, with what the assistant says as targets: whole, as far as there are positions for them."""
    rendered = [render(dialogue, run.tokenizers.target) for dialogue in dialogues]
    limit = run.recipe.model.max_length if run.recipe.model.position == "learned" else None
    rows = [each.ids[:-1][:limit] for each in rendered]
    wanted = [
        [number if learn else IGNORE for number, learn in zip(each.ids, each.learn, strict=True)][1:][:limit]
        for each in rendered
    ]
    for members, ids, real in batches_of(rows, run.tokenizers.target.pad, run.device):
        targets = torch.full_like(ids, IGNORE)
        targets[real] = torch.tensor([number for member in members for number in wanted[member]], device=ids.device)
        yield Batch({"ids": ids}, targets)
