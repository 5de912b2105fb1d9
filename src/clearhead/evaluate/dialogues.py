"""Conversations: what a model answers, and batches of the true answers to compute their likelihood.

Shapes: B conversations, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from clearhead.data.batches import IGNORE, Batch
from clearhead.decode.batching import Progress, no_progress, padded_batches
from clearhead.decode.chat import fitting_prompt
from clearhead.decode.defaults import ANSWER_TOKENS
from clearhead.decode.limits import tokens_left
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.fast.choose import decoder_for
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.text.chat import render
from clearhead.text.dialogue import Dialogue


class Answers(NamedTuple):
    """The next answer in each conversation."""

    texts: list[str]
    shortened: int  # conversations whose oldest messages did not fit into the model's context


@torch.inference_mode()
def answers(run: Run, dialogues: Sequence[Dialogue], progress: Progress = no_progress) -> Answers:
    """Generate the next answer of each conversation by greedy search: `decode.chat.answer` in batches."""
    model = run.model
    tokenizer = run.tokenizers.target
    assert isinstance(model, DecoderOnly)
    kept = [fitting_prompt(run, dialogue, ANSWER_TOKENS) for dialogue in dialogues]
    texts = [""] * len(kept)
    decoder = decoder_for(model)
    prompts = [prompt for prompt, _ in kept]
    for batch in progress(padded_batches(prompts, tokenizer.pad, run.device, left=True), len(prompts)):
        limit = min(ANSWER_TOKENS, tokens_left(run.recipe.model, batch.ids.size(1)))
        ending = StopCriteria((tokenizer.end,), tokenizer.pad, limit)
        best_answers = greedy(decoder, decoder.start(batch.ids, batch.mask), ending)
        decoded = tokenizer.decode_batch([best.ids for best in best_answers])
        for member, text in zip(batch.members, decoded, strict=True):
            texts[member] = text
    return Answers(texts, sum(forgotten > 0 for _, forgotten in kept))


def true_answers(run: Run, dialogues: Sequence[Dialogue]) -> Iterator[Batch]:
    """Batches of whole conversations with the assistant's tokens as targets, cut at the model's last position."""
    rendered = [render(dialogue, run.tokenizers.target) for dialogue in dialogues]
    limit = run.recipe.model.position_limit
    rows = [each.ids[:-1][:limit] for each in rendered]
    wanted = [
        [number if learn else IGNORE for number, learn in zip(each.ids, each.learn, strict=True)][1:][:limit]
        for each in rendered
    ]
    for batch in padded_batches(rows, run.tokenizers.target.pad, run.device):
        targets = torch.full_like(batch.ids, IGNORE)
        learned = [number for member in batch.members for number in wanted[member]]
        targets[batch.real] = torch.tensor(learned, device=run.device)
        yield Batch({"ids": batch.ids}, targets)
