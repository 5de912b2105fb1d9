"""Prompt to continuation, conversation to answer: what language models write, whole or as it is written.

A prompt that does not fit is refused; a conversation that has become too long forgets its oldest turns, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from clearhead.config import UserError
from clearhead.decode.batching import batches_of
from clearhead.decode.limits import require_room, room
from clearhead.decode.sampling import Choice
from clearhead.decode.search import Ending, greedy, sample, stream
from clearhead.decode.stream import as_text
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.text.chat import prompt as chat_prompt
from clearhead.text.dialogue import Dialogue


def continuation(
    run: Run, prompt: Sequence[int], tokens: int, choice: Choice | None, seed: int | None
) -> Iterator[str]:
    """What follows a prompt of ids, as it is written: greedily, or drawn by a choice."""
    model, tokenizer = run.model, run.tokenizers.target
    assert isinstance(model, DecoderOnly)
    require_room(run, len(prompt), tokens)
    ids = torch.tensor([prompt], device=run.device)
    ending = Ending((tokenizer.end,), tokenizer.pad, tokens)

    def numbers() -> Iterator[int]:
        with torch.inference_mode():
            begun = model.start(ids)
        for number in stream(model, begun, ending, choice, None if seed is None else [seed], [prompt]):
            if int(number) in ending.end:
                return
            yield int(number)

    return as_text(numbers(), tokenizer)


def prompt_of(run: Run, text: str) -> list[int]:
    """The ids to begin with: a document's start, and the words that are given."""
    tokenizer = run.tokenizers.target
    return [tokenizer.start, *(tokenizer.encode(text) if text else [])]


def generate(
    run: Run, prompts: Sequence[str], tokens: int = 200, choice: Choice | None = None, seed: int | None = None
) -> list[str]:
    """How each text goes on, without the text itself; all are written side by side."""
    model = run.model
    assert isinstance(model, DecoderOnly)
    tokenizer, rows = run.tokenizers.target, [prompt_of(run, text) for text in prompts]
    require_room(run, max(map(len, rows), default=0), tokens)
    found = [""] * len(rows)
    for members, ids, real in batches_of(rows, tokenizer.pad, run.device, left=True):
        ending = Ending((tokenizer.end,), tokenizer.pad, tokens)
        with torch.inference_mode():
            begun = model.start(ids, real)
        seeds = None if seed is None else [seed + member for member in members]
        read = [rows[member] for member in members]
        best = sample(model, begun, ending, choice, seeds, read) if choice else greedy(model, begun, ending)
        for member, each in zip(members, best, strict=True):
            found[member] = tokenizer.decode(each.ids)
    return found


def generate_stream(
    run: Run, prompt: str, tokens: int = 200, choice: Choice | None = None, seed: int | None = None
) -> Iterator[str]:
    """How a text goes on, piece by piece, as it is written."""
    return continuation(run, prompt_of(run, prompt), tokens, choice, seed)


@dataclass(frozen=True)
class Answer:
    """An answer as it is written, and how many of the oldest messages there was no room for."""

    text: Iterator[str]
    forgotten: int

    def __iter__(self) -> Iterator[str]:
        return self.text


def answer(
    run: Run, dialogue: Dialogue, tokens: int = 256, choice: Choice | None = None, seed: int | None = None
) -> Answer:
    """What the assistant says next; where there is no room for a whole conversation, its oldest turns are left out."""
    kept, forgotten = remember(run, dialogue, tokens)
    most = int(room(run, torch.tensor(tokens), len(kept)))
    return Answer(continuation(run, kept, most, choice, seed), forgotten)


def remember(run: Run, dialogue: Dialogue, tokens: int) -> tuple[list[int], int]:
    """The prompt of a conversation with room for an answer, and how many of its oldest messages it leaves out."""
    position_limit = run.recipe.model.position_limit
    limit = min(run.recipe.data.max_length, position_limit or run.recipe.data.max_length)
    system = dialogue.messages[:1] if dialogue.messages and dialogue.messages[0].role == "system" else ()
    turns = dialogue.messages[len(system) :]
    for forgotten in range(0, len(turns) or 1, 2):  # a question goes with its answer
        ids = chat_prompt(Dialogue(system + turns[forgotten:]), run.tokenizers.target)
        if len(ids) + min(tokens, limit // 2) <= limit:
            return ids, forgotten
    if position_limit is not None:
        raise UserError(
            f"the last message alone has {len(ids):,} tokens, and the model reads {limit:,} with its answer; shorten it"
        )
    return ids, forgotten
