"""Masked text to tokens: what a masked language model predicts for each mask token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.config import require
from clearhead.decode.batching import padded_batches
from clearhead.model import EncoderOnly
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Candidate:
    """A token for the place of a mask token."""

    token: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A text with the most likely token in each masked place, and the candidates of each place, best first."""

    text: str
    masks: list[list[Candidate]]


@torch.inference_mode()
def fill(run: Run, texts: Sequence[str], top: int = 5) -> list[Filled]:
    """Return the `top` candidates for each mask token of each text."""
    model = run.model
    assert isinstance(model, EncoderOnly)
    tokenizer = run.tokenizers.target
    require(1 <= top <= tokenizer.vocab, f"top = {top}: must be between 1 and the {tokenizer.vocab:,} tokens there are")
    rows = [[tokenizer.start, *encode_masked(text, tokenizer), tokenizer.end] for text in texts]
    for number, row in enumerate(rows, 1):
        check_masked(run, row, number)
    found: list[Filled | None] = [None] * len(rows)
    for batch in padded_batches(rows, tokenizer.pad, run.device):
        probabilities = model(batch.ids, batch.real).float().softmax(-1)[..., : tokenizer.vocab]  # (B, T, V)
        best = probabilities.topk(top)
        for index, member in enumerate(batch.members):
            places = [place for place, number in enumerate(rows[member]) if number == tokenizer.mask]
            filled = list(rows[member])
            masks = []
            for place in places:
                ids = best.indices[index, place].tolist()
                values = best.values[index, place].tolist()
                filled[place] = ids[0]
                masks.append([Candidate(tokenizer.piece(n), p) for n, p in zip(ids, values, strict=True)])
            found[member] = Filled(tokenizer.decode(filled), masks)
    return [each for each in found if each]


def check_masked(run: Run, row: Sequence[int], number: int) -> None:
    """Refuse a text without a mask token, or one that is longer than the texts that the model was trained on."""
    tokenizer = run.tokenizers.target
    mask = tokenizer.piece(tokenizer.mask)
    require(tokenizer.mask in row, f"text {number:,} has no {mask}: write it in place of the word to predict")
    longest = run.recipe.data.max_length
    require(
        len(row) <= longest,
        f"text {number:,} has {len(row):,} tokens, and the model was trained on at most data.max_length = {longest}; "
        "shorten it",
    )


def encode_masked(text: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a text in which the name of the mask token stands for a word, as in "the <mask> barks".

    If the tokens of the vocabulary include the space before a word, the mask token replaces that space as well, as in
    training.
    """
    *before, last = text.split(tokenizer.piece(tokenizer.mask))
    if tokenizer.words_have_spaces:
        before = [part.removesuffix(" ") for part in before]
    return [number for part in before for number in (*tokenizer.encode(part), tokenizer.mask)] + tokenizer.encode(last)
