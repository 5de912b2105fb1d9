"""A text as a run's model reads it: the ids that enter its stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.generate import prompt_of
from clearhead.decode.limits import room
from clearhead.decode.translate import LONGER, Searching, search
from clearhead.model import EncoderDecoder
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.chat import prompt
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reading:
    """The tokens of one text: `source` enters the encoder, `target` the decoder; a family has one of them or both."""

    text: str
    target: str
    ids: dict[str, tuple[int, ...]]
    tokens: dict[str, tuple[str, ...]]

    def inputs(self, device: torch.device) -> list[Tensor]:
        """What the model is called with, a batch of one."""
        return [torch.tensor([ids], device=device) for ids in self.ids.values()]


def read(run: Run, text: str, target: str | None = None) -> Reading:
    """The ids of a text, framed as in training.

    An encoder-decoder that is given no target writes its own. In a language model the target follows the text.
    """
    source, other = run.tokenizers.source, run.tokenizers.target
    family, ids = run.recipe.model.family, {}
    if family == "encoder-decoder":
        ids["source"] = (*source.encode(text), source.end)
        written = write(run, ids["source"]) if target is None else other.encode(target)
        ids["target"] = (other.start, *written)
        target = other.decode(written)
    elif family == "decoder-only":
        ids["target"] = (*opening(run, text), *other.encode(target or ""))
    else:
        require(target is None, f"target {target!r}: an encoder-only model reads one text; leave the target out")
        masked = run.recipe.model.head == "vocabulary"
        ids["source"] = (other.start, *(with_masks(text, other) if masked else other.encode(text)), other.end)
    sides = {"source": source if family == "encoder-decoder" else other, "target": other}
    tokens = {side: tuple(map(sides[side].piece, numbers)) for side, numbers in ids.items()}
    return Reading(text, target or "", ids, tokens)


def opening(run: Run, text: str) -> list[int]:
    """How a text opens a language model's sequence: as a document, or as what the user says."""
    if TASKS[run.recipe.data.task].example == "dialogue":
        return prompt(Dialogue((Message("user", text),)), run.tokenizers.target)
    return prompt_of(run, text)


def with_masks(text: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a text in which the spelling of the mask token, as in "the <mask> barks", hides a word.

    Where tokens carry the space before them, the one before the mask is hidden with the word, as it was in training.
    """
    *before, last = text.split(tokenizer.piece(tokenizer.mask))
    if before and any(len(piece) > 1 and piece[0] == " " for piece in map(tokenizer.piece, range(tokenizer.vocab))):
        before = [part.removesuffix(" ") for part in before]
    return [number for part in before for number in (*tokenizer.encode(part), tokenizer.mask)] + tokenizer.encode(last)


@torch.inference_mode()
def write(run: Run, source: Sequence[int]) -> list[int]:
    """What an encoder-decoder writes, greedily, without the end token."""
    assert isinstance(run.model, EncoderDecoder)
    read, start = (torch.tensor([ids], device=run.device) for ids in (source, [run.tokenizers.target.start]))
    longest = room(run, torch.tensor([len(source) + LONGER], device=run.device), read=1)
    [[best]] = search(run, run.model.start(read, start), longest, Searching(beam=1))
    return best.ids
