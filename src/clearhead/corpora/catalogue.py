"""All corpora that are written here, by name."""

from __future__ import annotations

import dataclasses

from clearhead.config import UserError, suggest
from clearhead.corpora import headlines, instructions, paraphrases, phrasebook, reviews, stories
from clearhead.corpora.embedded import EmbeddedCorpus

EMBEDDED: dict[str, EmbeddedCorpus] = {
    module.CORPUS.name: module.CORPUS for module in (phrasebook, stories, reviews, headlines, instructions, paraphrases)
}


def embedded(name: str, size: int = 100_000, seed: int = 0) -> EmbeddedCorpus:
    """The embedded corpus of that name, with so many examples to train on, drawn from this seed."""
    if name not in EMBEDDED:
        raise UserError(f"data.corpus = {name!r}: no embedded corpus has that name; {suggest(name, EMBEDDED)}")
    if size < 1:
        raise UserError(f"data.size = {size}: an embedded corpus needs at least 1 example to train on")
    return dataclasses.replace(EMBEDDED[name], size=size, seed=seed)
