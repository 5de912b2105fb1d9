"""Conversation to answer: what the assistant says next.

A conversation that is too long for the model loses its oldest turns, and the answer says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clearhead.config import UserError
from clearhead.decode.defaults import ANSWER_TOKENS
from clearhead.decode.generate import continue_ids
from clearhead.decode.limits import tokens_left
from clearhead.decode.sampling import SamplingSettings
from clearhead.runs import Run
from clearhead.text.chat import render_prompt
from clearhead.text.dialogue import Dialogue


@dataclass(frozen=True)
class Answer:
    """An answer, streamed; `forgotten` counts the oldest messages, left out because they did not fit."""

    text: Iterator[str]
    forgotten: int

    def __iter__(self) -> Iterator[str]:
        return self.text


def answer(
    run: Run,
    dialogue: Dialogue,
    tokens: int = ANSWER_TOKENS,
    choice: SamplingSettings | None = None,
    seed: int | None = None,
) -> Answer:
    """Answer a conversation in at most `tokens` new tokens, greedily or as `choice` says."""
    ids, forgotten = fitting_prompt(run, dialogue, tokens)
    allowed = min(tokens, tokens_left(run.recipe.model, len(ids)))
    return Answer(continue_ids(run, ids, allowed, choice, seed), forgotten)


def fitting_prompt(run: Run, dialogue: Dialogue, tokens: int) -> tuple[list[int], int]:
    """The prompt of a conversation that leaves space for an answer, and how many of its oldest messages it omits.

    The system message stays. Space for `tokens` is left, or for half of what the model reads if that is less.
    """
    position_limit = run.recipe.model.position_limit
    limit = min(run.recipe.data.max_length, position_limit or run.recipe.data.max_length)
    system = dialogue.messages[:1] if dialogue.messages and dialogue.messages[0].role == "system" else ()
    turns = dialogue.messages[len(system) :]
    for forgotten in range(0, len(turns) or 1, 2):  # a question goes with its answer
        ids = render_prompt(Dialogue(system + turns[forgotten:]), run.tokenizers.target)
        if len(ids) + min(tokens, limit // 2) <= limit:
            return ids, forgotten
    if position_limit is not None:
        raise UserError(
            f"the last message alone has {len(ids):,} tokens, and the model reads {limit:,} with its answer; shorten it"
        )
    return ids, forgotten
